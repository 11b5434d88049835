//! The one client that every outgoing request goes through: pooled, within the egress rules, without cookies.
//!
//! HTTP/1.1 only: calls of steps are single and short, and every server speaks it. No compressed answers are asked for:
//! 256 KB is the most that is ever read.

use super::Outgoing;
use super::answer::{self, Broken, Text};
use super::failure::{self, Trail};
use crate::egress::Egress;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Method, Response, StatusCode};
use std::cell::RefCell;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};

const USER_AGENT: &str = concat!("stepwell/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 10;
/// Shorter than most servers keep a connection open (5 s is common): a request sent just as the server hangs up is
/// lost, and nobody can tell if it had arrived.
const POOL_IDLE: Duration = Duration::from_secs(4);
const POOL_IDLE_PER_HOST: usize = 128;

tokio::task_local! {
    /// Where the request of this task has been redirected to. A redirect policy belongs to the whole client and reqwest
    /// reports no trail with an error, but it asks the policy within the request's own future.
    static TRAIL: RefCell<Trail>;
}

pub struct Client {
    egress: Egress,
    /// Missing only if not even a client without certificates could be made.
    http: Option<reqwest::Client>,
    /// Why `https` does not work here.
    no_tls: Option<String>,
}

impl Client {
    /// A machine without root certificates (a bare container) can still call `http` URLs.
    pub fn new(egress: Egress, connect_timeout: Duration) -> Client {
        let builder =
            || builder(egress, connect_timeout).redirect(Policy::custom(move |attempt| redirect(egress, attempt)));
        match builder().build() {
            Ok(http) => Client { egress, http: Some(http), no_tls: None },
            Err(error) => {
                let cause = failure::cause(&error);
                tracing::warn!(%cause, "https URLs cannot be called");
                let http = builder().tls_certs_only(Vec::new()).build().ok();
                Client { egress, http, no_tls: Some(cause) }
            }
        }
    }

    /// Sends one request and reads its answer. Dropping the future closes the connection.
    pub async fn send(&self, outgoing: Outgoing) -> Outcome {
        let (response, trail) = match self.open(outgoing).await {
            Ok(opened) => opened,
            Err(failure) => return failed(failure),
        };
        let status = response.status();
        let retry_after = failure::retry_after(response.headers(), jiff::Timestamp::now());
        let (reply, broken) = answer::read(response).await;
        match broken {
            // The status is the answer, even where its explanation is cut short.
            _ if !status.is_success() => {
                let failure = failure::of_status(&trail, status, retry_after);
                Outcome::Failure { failure, reply: Some(reply) }
            }
            Some(error) => failed(failure::of_error(&trail, &error)),
            None => Outcome::Success(reply),
        }
    }

    /// The same for code, which looks at the status itself and wants the body as it came.
    pub async fn fetch(&self, outgoing: Outgoing) -> Result<Text, Failure> {
        let (response, trail) = self.open(outgoing).await?;
        answer::text(response).await.map_err(|broken| match broken {
            Broken::Connection(error) => failure::of_error(&trail, &error),
            Broken::TooLong => failure::too_long(&trail),
        })
    }

    /// Sends a request, as far as the head of its answer.
    async fn open(&self, outgoing: Outgoing) -> Result<(Response, Trail), Failure> {
        let Outgoing { method, url, headers, body, hosts, bound, guard } = outgoing;
        let mut trail = Trail { hosts, bound, ..Trail::new(method.clone(), url.clone()) };
        if trail.hosts.as_ref().is_some_and(|hosts| !hosts.allow(&url)) {
            return Err(failure::host_refused(&trail));
        }
        if let Some(bound) = trail.elsewhere(&url) {
            return Err(failure::bound(&trail, &bound.to_string()));
        }
        if let Err(refused) = self.egress.check_url(&url) {
            return Err(failure::refused(&trail, &refused));
        }
        let http = match (&self.http, &self.no_tls) {
            (Some(http), None) => http,
            (Some(http), Some(_)) if url.scheme() == "http" => http,
            (Some(_) | None, why) => return Err(failure::no_tls(&trail, why.as_deref().unwrap_or_default())),
        };
        if let Some(guard) = guard {
            let rules = guard.rules().await?;
            rules.check(&url).map_err(|why| failure::by_policy(&trail, why))?;
            trail.rules = Some(rules);
        }
        let mut request = http.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let sent = TRAIL.scope(RefCell::new(trail.clone()), async {
            let answer = request.send().await;
            (answer, TRAIL.with(RefCell::take))
        });
        let answer;
        (answer, trail) = sent.await;
        match answer {
            Ok(response) => Ok((response, trail)),
            Err(error) => Err(failure::of_error(&trail, &error)),
        }
    }
}

/// What every client of ours has in common. Where redirects lead is not said yet.
pub fn builder(egress: Egress, connect_timeout: Duration) -> reqwest::ClientBuilder {
    stepwell_store::tls::install();
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        // A proxy would make the connection that the egress rules are about.
        .no_proxy()
        // It would hand the query of one host, secrets and all, to the next.
        .referer(false)
        .retry(reqwest::retry::never())
        .dns_resolver(egress)
        .connect_timeout(connect_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_PER_HOST)
        .http1_only()
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failure { failure, reply: None }
}

fn redirect(egress: Egress, attempt: Attempt<'_>) -> reqwest::redirect::Action {
    // The first of the previous URLs is where it began.
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error(failure::Redirected::TooOften);
    }
    if !matches!(attempt.url().scheme(), "http" | "https") {
        return attempt.error(failure::Redirected::OtherScheme);
    }
    // Noted before the check, so that a refusal names the address that was refused.
    // Outside of a task of ours there is no trail to keep.
    let refused = TRAIL.try_with(|trail| {
        let mut trail = trail.borrow_mut();
        trail.follow(attempt.status(), attempt.url());
        if trail.hosts.as_ref().is_some_and(|hosts| !hosts.allow(attempt.url())) {
            return Some(failure::Redirected::OtherHost);
        }
        // What a redirect would not take along does not hold it back.
        let bound = trail.elsewhere(attempt.url()).filter(|bound| !bound.left_behind);
        bound.map(|bound| failure::Redirected::Bound(bound.to_string()))
    });
    if let Some(refused) = refused.ok().flatten() {
        return attempt.error(refused);
    }
    if let Err(refused) = egress.check_url(attempt.url()) {
        return attempt.error(refused);
    }
    let judged = TRAIL.try_with(|trail| trail.borrow().rules.as_ref().map(|rules| rules.check(attempt.url())));
    match judged.ok().flatten() {
        Some(Err(failure)) => attempt.error(failure::Redirected::Policy(failure)),
        Some(Ok(())) | None => attempt.follow(),
    }
}

impl Trail {
    /// 307 and 308 ask for the same request elsewhere, so it was not carried out; after the others a POST goes on as a
    /// GET, which is how a server shows the result of what it has done.
    fn follow(&mut self, status: StatusCode, next: &url::Url) {
        let repeated = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let becomes_get = status == StatusCode::SEE_OTHER || self.method == Method::POST;
        self.maybe_done |= !repeated && becomes_get;
        self.redirected = Some(next.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_with_tls() {
        let client = Client::new(Egress { allow_private: false }, Duration::from_secs(1));
        assert!(client.http.is_some());
        assert_eq!(client.no_tls, None);
    }
}
