//! The client: how calls are made. What can be called is in the files by noun.

use crate::call::{Body, pause};
use crate::{Call, Error, Options, Problem, find, tls};
use reqwest::header::{ETAG, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
/// A server on this machine that takes longer to answer the health check counts as gone.
const PROBE: Duration = Duration::from_secs(3);
/// The most of a strange answer that an error shows.
const SHOWN: usize = 200;

/// A client of a Stepwell server.
///
/// Calls that have the same effect when they are repeated are repeated after lost connections and temporary problems, up to
/// [`ATTEMPTS`](crate::ATTEMPTS) times. A trigger has an idempotency key, so that a repetition starts no second run. Other
/// changes are sent once: after an [`Error::ConnectionFailed`] with `sent`, read what became of them.
pub struct Client {
    pub(crate) http: reqwest::Client,
    base: Mutex<Url>,
    pub(crate) key: Option<String>,
    /// The file that the address came from; the address may change when the server starts again.
    file: Option<PathBuf>,
}

/// Something that a call returned, and whether that call created it.
#[derive(Clone, PartialEq, Debug)]
pub struct Created<T> {
    /// What the call returned.
    pub data: T,
    /// False if it was there before, such as a run with the same idempotency key.
    pub is_new: bool,
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

impl Client {
    /// A client of this server, which a proxy may lead to.
    pub fn new(url: &str, key: Option<&str>) -> Result<Client, Error> {
        Client::at(find::parse(url)?, key.map(str::to_string), None)
    }

    /// A client of the server that the environment names, else of the one that uses the data directory of this machine.
    pub fn find() -> Result<Client, Error> {
        Options::default().find()
    }

    pub(crate) fn at(base: Url, key: Option<String>, file: Option<PathBuf>) -> Result<Client, Error> {
        Ok(Client { http: http(&base)?, base: Mutex::new(base), key, file })
    }

    /// The server's address.
    pub fn url(&self) -> Url {
        self.base.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Whether calls are made with a key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Reads the server's address again.
    pub(crate) fn relocate(&self) {
        if let Some(url) = self.file.as_deref().and_then(find::read_address) {
            *self.base.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = url;
        }
    }

    /// Whether the server is alive.
    pub async fn answers(&self) -> bool {
        let mut url = self.url();
        url.set_path("/healthz");
        self.http.get(url).timeout(PROBE).send().await.is_ok_and(|response| response.status() == StatusCode::OK)
    }

    /// A request with the key, for what is not JSON below `/api/v1`. `path` begins with a slash.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.url();
        url.set_path(path);
        let request = self.http.request(method, url);
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub(crate) fn prepare(&self, call: &Call<'_>) -> Result<RequestBuilder, Error> {
        let mut url = self.url();
        // Parsing of the URL would normalise these segments away.
        if let Some(odd) = call.path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            return Err(Error::Invalid(format!("{odd:?} is not a valid name")));
        }
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(&call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let request = self.http.request(call.method.clone(), url).headers(call.headers.clone());
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        Ok(match &call.body {
            Some(Body::Json(body)) => request.header("content-type", "application/json").body(body.clone()),
            Some(Body::Text(body)) => request.header("content-type", "application/yaml").body(body.clone()),
            None => request,
        })
    }

    /// Sends a request and returns the response if it is a success.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| Error::connection(&self.url(), &error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(refused(response).await)
    }

    /// Makes the call, again if it may be repeated. Returns the response with its body.
    async fn make(&self, call: &Call<'_>) -> Result<(StatusCode, Option<String>, String), Error> {
        let mut attempt = 1;
        loop {
            match self.once(call).await {
                Err(error) if attempt < call.attempts && error.may_recover() => {
                    tokio::time::sleep(pause(attempt, &error)).await;
                    attempt += 1;
                    self.relocate();
                }
                answer => return answer,
            }
        }
    }

    async fn once(&self, call: &Call<'_>) -> Result<(StatusCode, Option<String>, String), Error> {
        let response = self.send(self.prepare(call)?.timeout(call.timeout)).await?;
        let tag = response.headers().get(ETAG).and_then(|tag| Some(tag.to_str().ok()?.to_string()));
        let status = response.status();
        let text = response.text().await.map_err(|error| Error::connection(&self.url(), &error))?;
        Ok((status, tag, text))
    }

    fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, Error> {
        let odd = |error| format!("cannot parse the response of {} ({error}): is it a newer stepwell?", self.url());
        serde_json::from_str(text).map_err(|error| Error::Unexpected(odd(error)))
    }

    /// The whole response body, such as a page.
    pub async fn body<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Error> {
        let (_, _, text) = self.make(&call).await?;
        self.read(&text)
    }

    /// The `data` of the response.
    pub async fn data<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Error> {
        Ok(self.body::<Data<T>>(call).await?.data)
    }

    /// The `data` of the response, or nothing if it has no body.
    pub async fn data_if_any<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<Option<T>, Error> {
        let (status, _, text) = self.make(&call).await?;
        if status == StatusCode::NO_CONTENT { Ok(None) } else { Ok(Some(self.read::<Data<T>>(&text)?.data)) }
    }

    /// The `data` of the response, and whether this call created it.
    pub async fn created<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<Created<T>, Error> {
        let (status, _, text) = self.make(&call).await?;
        let Data { data } = self.read(&text)?;
        Ok(Created { data, is_new: status == StatusCode::CREATED })
    }

    /// The `data` of the response and its ETag, for a later `if-match`.
    pub async fn data_with_etag<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<(T, Option<String>), Error> {
        let (_, tag, text) = self.make(&call).await?;
        Ok((self.read::<Data<T>>(&text)?.data, tag))
    }

    /// For responses without a body, or whose body does not matter.
    pub async fn execute(&self, call: Call<'_>) -> Result<(), Error> {
        self.make(&call).await.map(|_| ())
    }
}

/// An HTTP client for this address. A server on this machine is not reached through a proxy.
pub(crate) fn http(base: &Url) -> Result<reqwest::Client, Error> {
    let http = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("stepwell-rust/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls::config(base.scheme() == "https")?);
    let http = if find::is_local(base) { http.no_proxy() } else { http };
    http.build().map_err(|error| Error::Invalid(format!("cannot create an HTTP client: {error}")))
}

/// Why the server refused, as it says.
pub(crate) async fn refused(response: Response) -> Error {
    let (status, mut base) = (response.status(), response.url().clone());
    base.set_path("/");
    base.set_query(None);
    let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    let text = response.text().await.unwrap_or_default();
    let found = serde_json::from_str::<Problem>(&text).ok().filter(|problem| !problem.code.is_empty());
    let Some(mut problem) = found else {
        let shown: String = text.chars().take(SHOWN).collect();
        let shown = if shown.is_empty() { shown } else { format!(" ({})", shown.escape_debug()) };
        return match status.as_u16() {
            // A proxy in front of the server.
            408 | 429 | 502..=504 => Error::Problem(Box::new(Problem {
                status: status.as_u16(),
                code: "unavailable".into(),
                detail: format!("{base} answered {status}{shown}"),
                retry_after: after.map(Duration::from_secs),
                ..Problem::default()
            })),
            _ => Error::Unexpected(format!("{base} answered {status}: is it a stepwell server?")),
        };
    };
    problem.status = status.as_u16();
    problem.retry_after = after.map(Duration::from_secs);
    Error::Problem(Box::new(problem))
}

/// An empty object in place of nothing: inputs and bodies are JSON objects unless said otherwise.
pub(crate) fn or_empty(value: Value) -> Value {
    if value.is_null() { Value::Object(Default::default()) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_needs_no_installed_tls_provider() {
        assert!(Client::new("https://stepwell.example.com", None).is_ok());
        assert!(rustls::crypto::CryptoProvider::get_default().is_none(), "it must not install one either");
    }
}
