//! A client of the server's API: JSON over HTTP with a key. Problem responses become [`Refusal`]s.

mod mcp;
mod refusal;
mod stream;
mod target;

pub use mcp::McpHeaders;
pub use refusal::Refusal;
pub use stream::{Next, Parser, Stream};
pub use target::Target;

use crate::commands::Exit;
use anyhow::Context;
use reqwest::header::{ETAG, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use stepwell_server::view::{Data, ProblemView};

const CONNECT: Duration = Duration::from_secs(5);
/// No call waits for a run, so a response that takes longer means something is wrong.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A local server that takes longer to answer the health check counts as gone.
const PROBE: Duration = Duration::from_secs(3);
/// Retries of [`Client::data_with_retry`], and the delay between them.
const RETRIES: u32 = 100;
const RETRY_DELAY: Duration = Duration::from_millis(500);

pub struct Client {
    http: reqwest::Client,
    base: Mutex<Url>,
    key: Option<String>,
    /// The file its address came from; the address may change after a restart.
    file: Option<PathBuf>,
}

struct Head {
    status: StatusCode,
    tag: Option<String>,
}

/// A request to a server.
pub struct Call<'a> {
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    body: Option<Body>,
}

enum Body {
    Json(Value),
    /// JSON or YAML as the author wrote it.
    Text(String),
}

impl<'a> Call<'a> {
    fn new(method: Method, path: &'a [&'a str]) -> Call<'a> {
        Call { method, path, query: Vec::new(), headers: HeaderMap::new(), body: None }
    }

    pub fn get(path: &'a [&'a str]) -> Call<'a> {
        Call::new(Method::GET, path)
    }

    pub fn post(path: &'a [&'a str]) -> Call<'a> {
        Call::new(Method::POST, path)
    }

    pub fn put(path: &'a [&'a str]) -> Call<'a> {
        Call::new(Method::PUT, path)
    }

    pub fn patch(path: &'a [&'a str]) -> Call<'a> {
        Call::new(Method::PATCH, path)
    }

    pub fn delete(path: &'a [&'a str]) -> Call<'a> {
        Call::new(Method::DELETE, path)
    }

    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Call<'a> {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub fn header(mut self, name: &'static str, value: Option<&str>) -> anyhow::Result<Call<'a>> {
        if let Some(value) = value {
            let value = HeaderValue::from_str(value).with_context(|| format!("{value:?} cannot be sent as {name}"))?;
            self.headers.insert(HeaderName::from_static(name), value);
        }
        Ok(self)
    }

    pub fn json(mut self, body: Value) -> Call<'a> {
        self.body = Some(Body::Json(body));
        self
    }

    pub fn text(mut self, body: &str) -> Call<'a> {
        self.body = Some(Body::Text(body.to_string()));
        self
    }
}

impl Client {
    fn new(base: Url, key: Option<String>, file: Option<PathBuf>) -> anyhow::Result<Client> {
        stepwell_store::tls::install();
        let http = reqwest::Client::builder().connect_timeout(CONNECT).redirect(reqwest::redirect::Policy::none());
        // A local server is not reached through a proxy.
        let http = if target::is_local(&base) { http.no_proxy() } else { http };
        let http = http.build().context("cannot create an HTTP client")?;
        Ok(Client { http, base: Mutex::new(base), key, file })
    }

    fn base(&self) -> Url {
        self.base.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Reads the server's address again.
    fn relocate(&self) {
        if let Some(url) = self.file.as_deref().and_then(target::read_address) {
            *self.base.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = url;
        }
    }

    async fn answers(&self) -> bool {
        let mut url = self.base();
        url.set_path("/healthz");
        self.http.get(url).timeout(PROBE).send().await.is_ok_and(|response| response.status() == StatusCode::OK)
    }

    fn request(&self, call: Call<'_>) -> anyhow::Result<RequestBuilder> {
        let mut url = self.base();
        // URL parsing would normalise these segments away.
        if let Some(odd) = call.path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(Refusal::new(Exit::BadInput, format!("{odd:?} is not a valid name")).into());
        }
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(call.query);
        }
        let request = self.http.request(call.method, url).headers(call.headers);
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        Ok(match call.body {
            Some(Body::Json(body)) => request.header("content-type", "application/json").body(body.to_string()),
            Some(Body::Text(body)) => request.header("content-type", "application/yaml").body(body),
            None => request,
        })
    }

    /// Sends a request and returns the response if it is a success.
    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let response = request.send().await.map_err(|error| self.unanswered(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        let problem = serde_json::from_str::<ProblemView>(&text).ok().filter(|problem| !problem.code.is_empty());
        Err(match problem {
            Some(problem) if problem.status == 401 && self.key.is_none() => {
                let detail = format!("{}. Give a key with --api-key or STEPWELL_KEY", problem.detail);
                Refusal::from(ProblemView { detail, ..problem })
            }
            Some(problem) => problem.into(),
            None => Refusal::new(Exit::Failed, format!("{} answered {status}: is it a stepwell server?", self.base())),
        }
        .into())
    }

    fn unanswered(&self, error: &reqwest::Error) -> Refusal {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let base = self.base();
        if error.is_connect() {
            let text = format!("no server answers at {base} ({cause}); `stepwell serve` starts one");
            return Refusal::unreachable(text);
        }
        let text =
            format!("the server at {base} did not answer ({cause}); the request may or may not have taken effect");
        Refusal::unreachable(text)
    }

    /// The parsed body of a response, with its status and tag.
    async fn answer<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<(Head, T)> {
        let response = self.send(self.request(call)?.timeout(TIMEOUT)).await?;
        let tag = response.headers().get(ETAG).and_then(|tag| Some(tag.to_str().ok()?.to_string()));
        let head = Head { status: response.status(), tag };
        let text = response.text().await.map_err(|error| self.unanswered(&error))?;
        let odd = |error| format!("cannot parse the response of {} ({error}): is it a newer stepwell?", self.base());
        let read = serde_json::from_str(&text).map_err(|error| Refusal::new(Exit::Failed, odd(error)))?;
        Ok((head, read))
    }

    /// The whole response body, such as a page.
    pub async fn body<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<T> {
        Ok(self.answer(call).await?.1)
    }

    /// The `data` of the response.
    pub async fn data<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<T> {
        Ok(self.body::<Data<T>>(call).await?.data)
    }

    /// The `data` of the response, or nothing if it has no body.
    pub async fn data_if_any<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<Option<T>> {
        let response = self.send(self.request(call)?.timeout(TIMEOUT)).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let text = response.text().await.map_err(|error| self.unanswered(&error))?;
        let odd = |error| format!("cannot parse the response of {} ({error}): is it a newer stepwell?", self.base());
        let read = serde_json::from_str::<Data<T>>(&text);
        Ok(Some(read.map_err(|error| Refusal::new(Exit::Failed, odd(error)))?.data))
    }

    /// The `data` of the response, and whether this call created it.
    pub async fn created<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<(T, bool)> {
        let (head, Data { data }) = self.answer(call).await?;
        Ok((data, head.status == StatusCode::CREATED))
    }

    /// The `data` of the response and its ETag, for a later `If-Match`.
    pub async fn data_with_etag<T: DeserializeOwned>(&self, call: Call<'_>) -> anyhow::Result<(T, Option<String>)> {
        let (head, Data { data }) = self.answer(call).await?;
        Ok((data, head.tag))
    }

    /// Like [`Client::data`], but retries for a while if the server is gone.
    pub async fn data_with_retry<T: DeserializeOwned>(&self, path: &[&str]) -> anyhow::Result<T> {
        let mut retries = 0;
        loop {
            match self.data(Call::get(path)).await {
                Err(error) if retries < RETRIES && Refusal::is_transient(&error) => {
                    retries += 1;
                    tokio::time::sleep(RETRY_DELAY).await;
                    self.relocate();
                }
                answer => return answer,
            }
        }
    }

    /// For responses without a body.
    pub async fn execute(&self, call: Call<'_>) -> anyhow::Result<()> {
        self.send(self.request(call)?.timeout(TIMEOUT)).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_with_tls() {
        assert!(Client::new(Url::parse("https://stepwell.example.com").unwrap(), None, None).is_ok());
    }
}
