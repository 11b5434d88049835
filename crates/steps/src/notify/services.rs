//! Channels that are HTTP requests: Pushover, webhooks, Slack-compatible webhooks and ntfy.

use super::short;
use crate::http::{Client, Outgoing, redacted};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use stepwell_core::event::{Failure, Outcome, Reply};
use stepwell_engine::notify::{Parcel, Settings, Undelivered};
use stepwell_engine::sign_webhook;
use url::Url;
use url::form_urlencoded::Serializer;

const NTFY: &str = "https://ntfy.sh";
/// Pushover's limits, in characters.
const PUSHOVER_TITLE: usize = 250;
const PUSHOVER_MESSAGE: usize = 1_024;
/// The receiver does not want any more requests.
const GONE: u16 = 410;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

pub struct Services {
    pub client: Client,
    pub pushover_url: String,
    pub pushover_token: Option<String>,
}

/// A request whose URL and headers are not validated yet.
struct Draft {
    url: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Services {
    /// The server's own application token. A channel that names another service does not get it.
    pub fn default_token(&self, url: Option<&str>) -> Option<&str> {
        let base = |url: &str| url.trim_end_matches('/').to_owned();
        let own = url.is_none_or(|url| base(url) == base(&self.pushover_url));
        self.pushover_token.as_deref().filter(|_| own)
    }

    pub async fn send(&self, parcel: &Parcel) -> Result<(), Undelivered> {
        let draft = self.draft(parcel)?;
        let url = Url::parse(&draft.url).map_err(|_| Undelivered::for_good("the channel's URL is invalid"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in draft.headers {
            let value = HeaderValue::from_str(&value);
            let value = value.map_err(|_| Undelivered::for_good(format!("the header {name} cannot be sent")))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let outgoing =
            Outgoing::new(Method::POST, url.clone(), headers, Some(draft.body.into())).guarded(&parcel.guard);
        match self.client.send(outgoing).await {
            Outcome::Success(_) => Ok(()),
            Outcome::Failure { failure, reply } => Err(undelivered(&parcel.to, &url, failure, reply)),
        }
    }

    fn draft(&self, parcel: &Parcel) -> Result<Draft, Undelivered> {
        let message = &parcel.message;
        let mut headers = vec![("idempotency-key", parcel.id.clone())];
        Ok(match &parcel.to {
            Settings::Pushover { user_key, token, url } => {
                let none = || Undelivered::for_now("Pushover needs an application token, and none is configured");
                let token = token.as_deref().or_else(|| self.default_token(url.as_deref())).ok_or_else(none)?;
                let mut form = Serializer::new(String::new());
                form.append_pair("token", token).append_pair("user", user_key);
                form.append_pair("title", &truncate(&message.title(), PUSHOVER_TITLE));
                form.append_pair("message", &truncate(&message.lines(), PUSHOVER_MESSAGE));
                if let Some(link) = &parcel.link {
                    form.append_pair("url", link).append_pair("url_title", "Open");
                }
                headers.push((CONTENT_TYPE.as_str(), FORM.into()));
                let base = url.as_deref().unwrap_or(&self.pushover_url);
                Draft { url: format!("{}/1/messages.json", base.trim_end_matches('/')), headers, body: form.finish() }
            }
            Settings::Webhook { url, secret } => {
                let body = webhook_body(parcel).to_string();
                let time = (parcel.now.0 / 1_000).to_string();
                let signature = sign_webhook(secret, &parcel.id, &time, body.as_bytes());
                let signature = signature.map_err(Undelivered::for_good)?;
                headers.push((CONTENT_TYPE.as_str(), JSON.into()));
                headers.push(("webhook-id", parcel.id.clone()));
                headers.push(("webhook-timestamp", time));
                headers.push(("webhook-signature", signature));
                Draft { url: url.clone(), headers, body }
            }
            Settings::Slack { url } => {
                let link = parcel.link.as_ref().map(|link| format!("\n<{link}|Open>")).unwrap_or_default();
                let text = format!("*{}*\n{}{link}", escape_slack(&message.title()), escape_slack(&message.lines()));
                headers.push((CONTENT_TYPE.as_str(), JSON.into()));
                Draft { url: url.clone(), headers, body: json!({"text": text}).to_string() }
            }
            Settings::Ntfy { url, topic, token } => {
                let mut body = json!({"topic": topic, "title": message.title(), "message": message.lines()});
                if let Some(link) = &parcel.link {
                    body["click"] = json!(link);
                }
                headers.push((CONTENT_TYPE.as_str(), JSON.into()));
                headers.extend(token.iter().map(|token| (AUTHORIZATION.as_str(), format!("Bearer {token}"))));
                Draft { url: url.clone().unwrap_or_else(|| NTFY.into()), headers, body: body.to_string() }
            }
            Settings::Email { .. } => return Err(Undelivered::for_good("email is not sent as an HTTP request")),
        })
    }
}

/// The body of a webhook.
fn webhook_body(parcel: &Parcel) -> Value {
    let message = &parcel.message;
    let mut data = json!({
        "title": message.title(),
        "workflow": message.workflow,
        "run_id": message.run,
        "started_by": message.started_by,
        "message": message.text,
    });
    if let Some(step) = &message.step {
        data["step"] = json!(step);
        data["attempt"] = json!(message.attempt);
    }
    if message.topic.asks() {
        data["answerers"] = json!(message.answerers);
    }
    if let Some(until) = message.until {
        data["until"] = json!(until.to_string());
        data["on_timeout"] = json!(message.on_timeout);
    }
    if let Some(link) = &parcel.link {
        data["url"] = json!(link);
    }
    json!({"type": message.topic.name(), "timestamp": message.at.to_string(), "data": data})
}

/// Builds the error without the URL's path, which is often a channel's credential.
fn undelivered(to: &Settings, url: &Url, failure: Failure, reply: Option<Reply>) -> Undelivered {
    let origin = url.origin().ascii_serialization();
    let mut why = failure.message.replace(&redacted(url), &origin);
    if let Some((before, rest)) = why.split_once(" (redirected to ") {
        let after = rest.split_once(')').map(|(_, after)| after).unwrap_or_default();
        why = format!("{before} (redirected){after}");
    }
    let errors = reply.as_ref().and_then(|reply| reply.body.get("errors")).and_then(Value::as_array);
    for error in errors.into_iter().flatten().filter_map(Value::as_str).take(3) {
        why.push_str(": ");
        why.push_str(error);
    }
    // While a webhook receiver is being deployed, it may return any status, so most statuses are retried.
    let status = reply.and_then(|reply| reply.status_code);
    let odd = matches!(to, Settings::Webhook { .. }) && status.is_some_and(|status| status != GONE);
    Undelivered { why: short(&why), again: failure.retryable || odd, after: failure.retry_after }
}

fn truncate(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

/// Escapes text for Slack, so that user input creates neither mentions nor links.
fn escape_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
