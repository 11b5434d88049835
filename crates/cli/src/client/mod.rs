//! The way to a server: the client of the API with [`Refusal`]s as errors, and the server and key of a command line.

mod mcp;
mod refusal;
mod target;

pub use mcp::McpHeaders;
pub use refusal::Refusal;
pub use stepwell_client::{Call, Created, Next, Parser};
pub use target::Target;

use serde::de::DeserializeOwned;
use std::time::Duration;
use stepwell_client::{Error, Stream};

/// Attempts of [`Client::data_with_retry`]: about a minute.
const ATTEMPTS: u32 = 16;
/// How long to wait for a lost server while following a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// A client of the API. What it returns are the types of `stepwell_server::view`, as from a data directory.
pub struct Client(stepwell_client::Client);

impl Client {
    /// The whole response body, such as a page.
    pub async fn body<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<T> {
        self.or_refusal(self.0.body(call).await)
    }

    /// The `data` of the response.
    pub async fn data<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<T> {
        self.or_refusal(self.0.data(call).await)
    }

    /// The `data` of the response, or nothing if it has no body.
    pub async fn data_if_any<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<Option<T>> {
        self.or_refusal(self.0.data_if_any(call).await)
    }

    /// The `data` of the response, and whether this call created it.
    pub async fn created<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<Created<T>> {
        self.or_refusal(self.0.created(call).await)
    }

    /// The `data` of the response and its ETag, for a later `If-Match`.
    pub async fn data_with_etag<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<(T, Option<String>)> {
        self.or_refusal(self.0.data_with_etag(call).await)
    }

    /// Like [`Client::data`], but retries for a while if the server is gone.
    pub async fn data_with_retry<T: DeserializeOwned>(&self, path: &[&str]) -> anyhow::Result<T> {
        self.data(Call::get(path).attempts(ATTEMPTS)).await
    }

    /// For responses without a body.
    pub async fn execute(&self, call: Call<'_>) -> anyhow::Result<()> {
        self.or_refusal(self.0.execute(call).await)
    }

    /// The events of a run after this version.
    pub fn stream(&self, run: &str, after: Option<i64>) -> Stream<'_> {
        Stream::new(&self.0, run, after).patience(PATIENCE)
    }

    fn or_refusal<T>(&self, result: Result<T, Error>) -> anyhow::Result<T> {
        result.map_err(|error| match error {
            Error::Problem(mut problem) if problem.status == 401 && !self.0.has_key() => {
                problem.detail += ". Give a key with --api-key or STEPWELL_KEY";
                Refusal::from(Error::Problem(problem)).into()
            }
            error => Refusal::from(error).into(),
        })
    }
}
