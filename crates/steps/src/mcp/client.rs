//! Posts messages to a server behind a URL. Unlike the SDK's own client, it limits what a response may contain, and
//! reports an unreadable one to its call.
//!
//! Streams and sessions are left to the SDK.

use super::limits::{MAX_MESSAGE, MAX_VALUES, Verdict};
use super::message::{self, Incoming};
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

const SESSION: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Maximum size of an error response, in bytes.
const MAX_ERROR_BODY: usize = 64 * 1024;

type ClientError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

#[derive(Clone)]
pub struct BoundedClient {
    pub http: reqwest::Client,
    pub verdict: Arc<Verdict>,
}

impl StreamableHttpClient for BoundedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let mut request =
            self.http.post(&*uri).header(ACCEPT, format!("{EVENTS}, {JSON}")).headers(headers.into_iter().collect());
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
        }
        let response = request.header(CONTENT_TYPE, JSON).body(serde_json::to_vec(&message)?).send().await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => Err(StreamableHttpError::SessionExpired),
            status if status.is_success() => self.success(&message, response).await,
            _ => refused(&message, session.is_some(), response).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), ClientError> {
        self.http.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, ClientError> {
        self.http.get_stream_with_max_sse_event_size(uri, session, last, token, headers, MAX_MESSAGE).await
    }
}

impl BoundedClient {
    async fn success(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let session = text(&response, SESSION);
        let kind = text(&response, CONTENT_TYPE.as_str());
        let is = |wanted: &str| kind.as_ref().is_some_and(|kind| kind.starts_with(wanted));
        let id = match message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        if is(EVENTS) {
            let verdict = self.verdict.clone();
            let bytes = bounded(response.bytes_stream(), MAX_MESSAGE, verdict.clone());
            let events = SseStream::from_bytes_stream(bytes).map(move |event| Ok(readable(event?, &id, &verdict)));
            return Ok(StreamableHttpPostResponse::Sse(events.boxed(), session));
        }
        // Some servers send a body for messages that need no response.
        let Some(id) = id else { return Ok(StreamableHttpPostResponse::Accepted) };
        if !is(JSON) {
            return Err(StreamableHttpError::UnexpectedServerResponse(unexpected_type(kind.as_deref()).into()));
        }
        let body = match read(response, MAX_MESSAGE).await {
            Err(StreamableHttpError::Io(error)) => {
                self.verdict.end(too_long(MAX_MESSAGE).to_string());
                return Err(error.into());
            }
            body => body?,
        };
        let answer = match message::read(&body) {
            Incoming::Message(answer) => *answer,
            Incoming::TooLarge => {
                self.verdict.end(too_many());
                return Err(io::Error::other(too_many()).into());
            }
            Incoming::Unreadable { why, .. } => message::unreadable(Some(id), &why),
            Incoming::Ignored => message::unreadable(Some(id), "it is not a message"),
        };
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }
}

fn too_many() -> String {
    format!("it sent a message of more than {MAX_VALUES} values")
}

/// Replaces an event that the SDK would skip by an error for the request that the stream answers.
fn readable(event: Sse, id: &Option<RequestId>, verdict: &Verdict) -> Sse {
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    let why = match event.data.as_deref().filter(|_| is_message).map(|data| message::read(data.as_bytes())) {
        Some(Incoming::Unreadable { why, .. }) => why,
        Some(Incoming::TooLarge) => {
            verdict.end(too_many());
            too_many()
        }
        Some(Incoming::Message(_) | Incoming::Ignored) | None => return event,
    };
    let lost = serde_json::to_string(&message::unreadable(id.clone(), &why)).unwrap_or_default();
    Sse { data: Some(lost), ..event }
}

/// Not the SDK's error for this, whose text is Rust's debug format.
fn unexpected_type(kind: Option<&str>) -> String {
    match kind {
        Some(kind) => format!("content type {kind}"),
        None => "no content type".into(),
    }
}

/// Handles an error status. A protocol error in the body counts as a response.
async fn refused(
    message: &ClientJsonRpcMessage,
    in_session: bool,
    response: Response,
) -> Result<StreamableHttpPostResponse, ClientError> {
    let status = response.status();
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let challenge = text(&response, WWW_AUTHENTICATE.as_str()).map(|text| format!(": {text}")).unwrap_or_default();
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(format!("HTTP {status}{challenge}"))));
    }
    let (retry_after, session) = (text(&response, RETRY_AFTER.as_str()), text(&response, SESSION));
    let reason = read(response, MAX_ERROR_BODY).await.unwrap_or_default();
    let error = match serde_json::from_slice(&reason) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
        Ok(_) | Err(_) => None,
    };
    if in_session && status == StatusCode::BAD_REQUEST && error.as_ref().is_some_and(is_about_session) {
        return Err(StreamableHttpError::SessionExpired);
    }
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    if let ClientJsonRpcMessage::Request(request) = message {
        // Any error on a message that it does not know identifies an older server.
        let probe = matches!(request.request, ClientRequest::DiscoverRequest(_)) && !in_session && !busy;
        let unknown = probe.then(|| ErrorData::invalid_request(format!("HTTP status {status}"), None));
        if let Some(error) = error.or(unknown) {
            // A server that did not parse the request cannot return its id.
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, session));
        }
    }
    if busy {
        return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
    }
    let reason = String::from_utf8_lossy(&reason).into_owned();
    Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {reason}").into()))
}

/// Whether the error means an unknown session. That should be a 404, but many servers copied this form.
fn is_about_session(error: &ErrorData) -> bool {
    error.code.0 == -32000 && error.message.to_lowercase().contains("session id")
}

fn text(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, ClientError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most {
            return Err(too_long(most).into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn too_long(most: usize) -> io::Error {
    io::Error::other(format!("it sent a message of more than {} KB", most / 1024))
}

/// Fails once an event exceeds the limit.
fn bounded(
    stream: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    most: usize,
    verdict: Arc<Verdict>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (mut bytes, mut fresh_line) = (0, true);
    stream.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        for byte in &chunk {
            bytes += 1;
            match byte {
                b'\n' if fresh_line => bytes = 0,
                b'\n' => fresh_line = true,
                b'\r' => {}
                _ => fresh_line = false,
            }
            if bytes > most {
                verdict.end(too_long(most).to_string());
                return Err(too_long(most));
            }
        }
        Ok(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[test]
    fn an_unexpected_content_type_is_described_without_debug_output() {
        assert_eq!(unexpected_type(Some("text/html; charset=\"utf-8\"")), "content type text/html; charset=\"utf-8\"");
        assert_eq!(unexpected_type(None), "no content type");
    }

    #[tokio::test]
    async fn the_size_of_an_event_is_limited_but_not_that_of_the_stream() {
        let chunks = |text: &'static [&'static str]| {
            stream::iter(text.iter().map(|part| Ok(Bytes::from_static(part.as_bytes()))))
        };
        let kept: Vec<_> =
            bounded(chunks(&["data: 12\r\n\r\n", "data: 34\n", "\ndata: 56\n\n"]), 12, Arc::default()).collect().await;
        assert!(kept.iter().all(Result::is_ok), "{kept:?}");
        let cut: Vec<_> = bounded(chunks(&["data: 12\n\nda", "ta: 3456", "789\n"]), 12, Arc::default()).collect().await;
        assert!(cut[0].is_ok() && cut[2].is_err(), "{cut:?}");
    }
}
