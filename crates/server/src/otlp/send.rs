//! Spans as OTLP in JSON, and the request that sends them to the collector.

use super::Error;
use super::spans::{Fact, Span};
use crate::config::Otlp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use stepwell_core::time::Time;
use stepwell_engine::trace::hex;

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);

/// The outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// Accepted, or rejected for good.
    Done,
    /// To be retried, after this time if the collector set one.
    Later(Option<Duration>),
}

pub struct Sender {
    client: Client,
    url: String,
    headers: HeaderMap,
    service: String,
    /// Whether the last request failed. Logged once, not on every attempt.
    ill: bool,
}

impl Sender {
    pub fn new(config: &Otlp) -> Result<Sender, Error> {
        stepwell_store::tls::install();
        let client = Client::builder().connect_timeout(CONNECT).timeout(ANSWER);
        let client = client.redirect(reqwest::redirect::Policy::none()).build()?;
        let mut headers = HeaderMap::new();
        for (name, value) in &config.headers {
            // The configuration was validated, so both conversions succeed.
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value.reveal())) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (url, service) = (format!("{}/v1/traces", config.endpoint), config.service_name.clone());
        Ok(Sender { client, url, headers, service, ill: false })
    }

    pub async fn send(&mut self, spans: impl Iterator<Item = &Span>) -> Sent {
        let body = request(&self.service, spans).to_string();
        let answer = self.client.post(&self.url).headers(self.headers.clone()).body(body).send().await;
        match answer {
            Ok(response) if response.status().is_success() => {
                if std::mem::take(&mut self.ill) {
                    tracing::info!("the collector accepts spans again");
                }
                Sent::Done
            }
            Ok(response) if is_temporary(response.status()) => {
                self.complain(&response.status());
                let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                Sent::Later(after.map(Duration::from_secs))
            }
            Ok(response) => {
                tracing::warn!(status = %response.status(), "the collector refused spans; they are dropped");
                Sent::Done
            }
            Err(error) => {
                // Without the URL, which may contain a password.
                self.complain(&error.without_url());
                Sent::Later(None)
            }
        }
    }

    fn complain(&mut self, why: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.ill, true) {
            tracing::warn!(%why, "the collector does not accept spans; retrying");
        }
    }
}

/// The statuses that the protocol declares retryable.
fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504)
}

fn request<'s>(service: &str, spans: impl Iterator<Item = &'s Span>) -> Value {
    let spans: Vec<Value> = spans.map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
        "scopeSpans": [{
            "scope": {"name": "stepwell", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

fn span(span: &Span) -> Value {
    let attributes = span.attributes.iter().map(|(key, fact)| {
        let value = match fact {
            Fact::Text(text) => json!({"stringValue": text}),
            // 64-bit integers are strings in this mapping.
            Fact::Number(number) => json!({"intValue": number.to_string()}),
            Fact::Flag(flag) => json!({"boolValue": flag}),
        };
        json!({"key": key, "value": value})
    });
    let mut json = json!({
        "traceId": hex(&span.trace),
        "spanId": hex(&span.id),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanos(span.start),
        // Avoids a negative duration after the clock was set back.
        "endTimeUnixNano": nanos(span.end.max(span.start)),
        "attributes": attributes.collect::<Vec<Value>>(),
        "status": match &span.error {
            Some(message) => json!({"code": 2, "message": message}),
            None => json!({}),
        },
    });
    if let Some(parent) = &span.parent {
        json["parentSpanId"] = hex(parent).into();
    }
    if let Some((trace, id)) = &span.link {
        json["links"] = json!([{"traceId": hex(trace), "spanId": hex(id)}]);
    }
    json
}

fn nanos(time: Time) -> String {
    (i128::from(time.0.max(0)) * 1_000_000).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_made_with_tls() {
        let endpoint = "https://collector.example.com".to_string();
        let config = Otlp { endpoint, headers: Default::default(), service_name: "stepwell".to_string() };
        assert!(Sender::new(&config).is_ok());
    }
}
