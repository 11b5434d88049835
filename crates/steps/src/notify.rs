//! Delivers notifications through Pushover, webhooks, Slack and ntfy, using the HTTP client that enforces the egress
//! rules, or by SMTP.
//!
//! Not here: recipients, retries and rate limits of channels (the engine).

mod email;
mod services;

pub use email::{Encryption, Smtp};

use crate::Config;
use crate::egress::Egress;
use crate::http::Client;
use async_trait::async_trait;
use email::Mail;
use services::Services;
use std::sync::Arc;
use stepwell_engine::notify::{Courier, Parcel, Settings, Undelivered};
use url::Url;

/// Maximum length of an error message, in characters.
const MAX_REASON: usize = 300;
/// Maximum length of an ntfy topic, in characters.
const MAX_TOPIC: usize = 64;

/// The delivery of all kinds of channels.
pub fn courier(config: &Config) -> Arc<dyn Courier> {
    Arc::new(Channels {
        egress: config.egress,
        services: Services {
            client: Client::new(config),
            pushover_url: config.pushover_url.clone(),
            pushover_token: config.pushover_token.clone(),
        },
        mail: config.smtp.as_ref().map(|smtp| Mail::new(smtp, &config.authorities)),
    })
}

struct Channels {
    egress: Egress,
    services: Services,
    /// The mail transport, or why the configured one cannot be used. `None` if none is configured.
    mail: Option<Result<Mail, String>>,
}

impl Channels {
    fn check_url(&self, text: &str) -> Result<(), (&'static str, String)> {
        let hint = "write an absolute URL such as https://example.com/hook";
        let url = Url::parse(text).map_err(|why| ("url", format!("this is not a URL: {why}; {hint}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(("url", format!("this must begin with http:// or https://; {hint}")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(("url", "this URL must not contain a user name or password".into()));
        }
        self.egress.check_url(&url).map_err(|why| ("url", why.to_string()))
    }
}

#[async_trait]
impl Courier for Channels {
    fn check(&self, settings: &Settings) -> Result<(), (&'static str, String)> {
        match settings {
            Settings::Pushover { token, url, .. } => {
                if token.is_none() && self.services.default_token(url.as_deref()).is_none() {
                    let why = match url {
                        Some(_) => "a channel with a `url` of its own needs a `token` of its own",
                        None => "this server has no default application token; set one",
                    };
                    return Err(("token", why.into()));
                }
                url.iter().try_for_each(|url| self.check_url(url))
            }
            Settings::Webhook { url, .. } | Settings::Slack { url } => self.check_url(url),
            Settings::Ntfy { url, topic, .. } => {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                if topic.len() > MAX_TOPIC || !topic.chars().all(plain) {
                    return Err(("topic", format!("1 to {MAX_TOPIC} letters, digits, - and _ are allowed")));
                }
                url.iter().try_for_each(|url| self.check_url(url))
            }
            Settings::Email { to } => match &self.mail {
                None => Err(("to", "this server does not send email; its operator can set `smtp`".into())),
                Some(_) => email::check(to).map_err(|why| ("to", why)),
            },
        }
    }

    async fn send(&self, parcel: &Parcel) -> Result<(), Undelivered> {
        match (&parcel.to, &self.mail) {
            (Settings::Email { to }, Some(Ok(mail))) => mail.send(parcel, to).await,
            (Settings::Email { .. }, Some(Err(why))) => Err(Undelivered::for_now(why.clone())),
            (Settings::Email { .. }, None) => Err(Undelivered::for_now("this server does not send email")),
            _ => self.services.send(parcel).await,
        }
    }
}

/// Truncates an error message and puts it on one line.
fn short(why: &str) -> String {
    let line: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.chars().take(MAX_REASON).collect()
}
