//! The HTTP client of all outgoing requests: pooled, restricted by the egress rules, without cookies.
//!
//! HTTP/1.1 only: steps make single, short calls, and every server speaks it. It does not request compressed responses,
//! because at most 256 KB are read.

use super::Outgoing;
use super::failure::{self, Trail};
use super::response::{self, BodyError, TextResponse};
use crate::Config;
use crate::egress::{Egress, OwnAddress, Refused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_LENGTH, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Method, Response, StatusCode};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_store::tls::Authorities;

const USER_AGENT: &str = concat!("stepwell/", env!("CARGO_PKG_VERSION"));
const MAX_REDIRECTS: usize = 10;
/// Shorter than the keep-alive of most servers (5 s is common). A request sent just as the server closes the connection
/// is lost, and the client cannot tell whether it arrived.
const POOL_IDLE: Duration = Duration::from_secs(4);
const POOL_IDLE_PER_HOST: usize = 128;

tokio::task_local! {
    /// The redirects of this task's request. A redirect policy belongs to the whole client, and reqwest does not report
    /// redirects with an error, but it calls the policy within the request's own future.
    static TRAIL: RefCell<Trail>;
}

pub struct Client {
    egress: Egress,
    own: OwnAddress,
    /// Missing only if not even a client without certificates can be built.
    http: Option<reqwest::Client>,
    /// Why `https` is unavailable.
    no_tls: Option<String>,
}

impl Client {
    /// Builds the client. A machine without root certificates (a bare container) can still call `http` URLs.
    pub fn new(config: &Config) -> Client {
        let (egress, own) = (config.egress, config.own_address.clone());
        let builder = || {
            let on_redirect = own.clone();
            builder(egress, config.connect_timeout, &config.authorities)
                .dns_resolver(Resolver { egress, own: own.clone() })
                .redirect(Policy::custom(move |attempt| redirect(egress, &on_redirect, attempt)))
        };
        match builder().build() {
            Ok(http) => Client { egress, own, http: Some(http), no_tls: None },
            Err(error) => {
                let cause = failure::cause(&error);
                tracing::warn!(%cause, "https URLs cannot be called");
                let http = builder().tls_certs_only(Vec::new()).build().ok();
                Client { egress, own, http, no_tls: Some(cause) }
            }
        }
    }

    /// Sends one request and reads its response. Dropping the future closes the connection.
    pub async fn send(&self, outgoing: Outgoing) -> Outcome {
        let (response, trail) = match self.open(outgoing).await {
            Ok(opened) => opened,
            Err(failure) => return failed(failure),
        };
        let status = response.status();
        let retry_after = failure::retry_after(response.headers(), jiff::Timestamp::now());
        let (reply, error) = response::read_reply(response).await;
        match error {
            // The status decides, even if the body is cut short.
            _ if !status.is_success() => {
                let failure = failure::from_status(&trail, status, retry_after);
                Outcome::Failure { failure, reply: Some(reply) }
            }
            Some(error) => failed(failure::from_error(&trail, &error)),
            None => Outcome::Success(reply),
        }
    }

    /// Sends a request for `fetch` in user code, which evaluates the status itself and needs the body as text.
    pub async fn fetch(&self, outgoing: Outgoing) -> Result<TextResponse, Failure> {
        let (response, trail) = self.open(outgoing).await?;
        response::read_text(response).await.map_err(|error| match error {
            BodyError::Connection(error) => failure::from_error(&trail, &error),
            BodyError::TooLarge => failure::too_large(&trail),
        })
    }

    /// Sends a request and waits for the head of its response.
    async fn open(&self, outgoing: Outgoing) -> Result<(Response, Trail), Failure> {
        let Outgoing { method, url, mut headers, body, hosts, bound, guard } = outgoing;
        let mut trail = Trail { hosts, bound, ..Trail::new(method.clone(), url.clone()) };
        if trail.hosts.as_ref().is_some_and(|hosts| !hosts.allow(&url)) {
            return Err(failure::host_refused(&trail));
        }
        if let Some(bound) = trail.forbidden_secret(&url) {
            return Err(failure::secret_bound(&trail, &bound.to_string()));
        }
        if let Err(refused) = self.egress.check_url(&url).and_then(|()| self.own.check_url(&url)) {
            return Err(failure::refused(&trail, &refused));
        }
        let http = match (&self.http, &self.no_tls) {
            (Some(http), None) => http,
            (Some(http), Some(_)) if url.scheme() == "http" => http,
            (Some(_) | None, why) => return Err(failure::no_tls(&trail, why.as_deref().unwrap_or_default())),
        };
        if let Some(guard) = guard {
            let rules = guard.rules().await?;
            rules.check(&url, trail.current.as_str()).map_err(|why| failure::denied_by_policy(&trail, why))?;
            trail.rules = Some(rules);
        }
        if body.is_none() && [Method::POST, Method::PUT, Method::PATCH].contains(&method) {
            // Some servers answer 411 to these methods if the length is missing.
            headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from_static("0"));
        }
        let mut request = http.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        let sent = TRAIL.scope(RefCell::new(trail.clone()), async {
            let response = request.send().await;
            (response, TRAIL.with(RefCell::take))
        });
        let response;
        (response, trail) = sent.await;
        match response {
            Ok(response) => Ok((response, trail)),
            Err(error) => Err(failure::from_error(&trail, &error)),
        }
    }
}

/// Resolves names within the egress rules, and drops addresses of this server.
struct Resolver {
    egress: Egress,
    own: OwnAddress,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        // A connection begins while its request's own future is polled, so the trail says which port it is for.
        let port = TRAIL.try_with(|trail| trail.borrow().port()).ok().flatten().unwrap_or_default();
        let (own, host) = (self.own.clone(), name.as_str().to_owned());
        let found = self.egress.resolve(name);
        Box::pin(async move {
            let all: Vec<SocketAddr> = found.await?.collect();
            let others = all.iter().copied().filter(|found| !own.is(SocketAddr::new(found.ip(), port)));
            let others: Vec<SocketAddr> = others.collect();
            if others.is_empty() && !all.is_empty() {
                return Err(Refused::own(&host).into());
            }
            let others: Addrs = Box::new(others.into_iter());
            Ok(others)
        })
    }
}

/// The settings that all HTTP clients share. The redirect policy is up to the caller.
pub fn builder(egress: Egress, connect_timeout: Duration, authorities: &Authorities) -> reqwest::ClientBuilder {
    stepwell_store::tls::install();
    // They were checked when they were read.
    let extra = authorities.certificates().iter().filter_map(|certificate| Certificate::from_der(certificate).ok());
    reqwest::Client::builder()
        .tls_certs_merge(extra)
        .user_agent(USER_AGENT)
        // A proxy would connect in our place, bypassing the egress rules.
        .no_proxy()
        // A referer would disclose one host's query, including secrets, to the next host.
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

fn redirect(egress: Egress, own: &OwnAddress, attempt: Attempt<'_>) -> reqwest::redirect::Action {
    // The first of the previous URLs is the original one.
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error(failure::RedirectRefused::TooMany);
    }
    if !matches!(attempt.url().scheme(), "http" | "https") {
        return attempt.error(failure::RedirectRefused::Scheme);
    }
    // Recorded before the check, so that a refusal names the refused address. Outside a request's task there is nothing
    // to record.
    let refused = TRAIL.try_with(|trail| {
        let mut trail = trail.borrow_mut();
        trail.follow(attempt.status(), attempt.url());
        if trail.hosts.as_ref().is_some_and(|hosts| !hosts.allow(attempt.url())) {
            return Some(failure::RedirectRefused::Host);
        }
        // A secret that the redirect would drop anyway does not prevent it.
        let bound = trail.forbidden_secret(attempt.url()).filter(|bound| !bound.left_behind);
        bound.map(|bound| failure::RedirectRefused::Bound(bound.to_string()))
    });
    if let Some(refused) = refused.ok().flatten() {
        return attempt.error(refused);
    }
    if let Err(refused) = egress.check_url(attempt.url()).and_then(|()| own.check_url(attempt.url())) {
        return attempt.error(refused);
    }
    let decision = TRAIL.try_with(|trail| {
        let trail = trail.borrow();
        trail.rules.as_ref().map(|rules| rules.check(attempt.url(), trail.current.as_str()))
    });
    match decision.ok().flatten() {
        Some(Err(failure)) => attempt.error(failure::RedirectRefused::Policy(failure)),
        Some(Ok(())) | None => attempt.follow(),
    }
}

impl Trail {
    /// 307 and 308 ask to repeat the request elsewhere, so the server has not carried it out. After the others a POST
    /// continues as a GET, which is how a server shows the result of what it has done.
    fn follow(&mut self, status: StatusCode, next: &url::Url) {
        let repeated = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let becomes_get = status == StatusCode::SEE_OTHER || self.method == Method::POST;
        self.maybe_done |= !repeated && becomes_get;
        if !repeated && becomes_get && self.current != Method::HEAD {
            self.current = Method::GET;
        }
        self.redirected = Some(next.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_with_tls() {
        let client = Client::new(&Config::default());
        assert!(client.http.is_some());
        assert_eq!(client.no_tls, None);
    }

    #[tokio::test]
    async fn without_tls_only_https_is_refused_and_the_reason_is_told() {
        let client = Client { no_tls: Some("no roots".into()), ..Client::new(&Config::default()) };
        let to = |url: &str| Outgoing::new(Method::GET, url.parse().unwrap(), Default::default(), None);
        let Err(refused) = client.fetch(to("https://example.com/")).await else { panic!("it was sent") };
        assert_eq!((&*refused.code, refused.retryable), ("tls_unavailable", false));
        assert!(refused.message.contains("no roots") && refused.message.contains("ca-certificates"), "{refused:?}");
        // Refused for what it is, and not for the lack of TLS.
        let Err(refused) = client.fetch(to("http://127.0.0.1:9/")).await else { panic!("it was sent") };
        assert_eq!(&*refused.code, "egress_refused");
    }
}
