//! Prometheus metrics: their names, the request middleware, and access to `/metrics`.
//!
//! The engine and the store report through the `metrics` facade and do not know this file. The size of the store is
//! sampled when `/metrics` is read, at most every few seconds.

use crate::config::{Secret, is_loopback, is_loopback_host};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use stepwell_store::Store;
use tokio::time::{Instant, timeout};

/// Minimum time between samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(15);
/// A sample is skipped if the store takes longer than this.
const SAMPLE_WITHIN: Duration = Duration::from_secs(2);
/// How often recorded observations are moved from memory to their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// From a commit to a long call.
const SECONDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];
const SIZES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

const COUNTERS: [(&str, &str); 6] = [
    ("stepwell_runs_started_total", "Runs started"),
    ("stepwell_runs_ended_total", "Runs ended, by status"),
    ("stepwell_steps_started_total", "Attempts started on this node, by kind"),
    ("stepwell_steps_ended_total", "Attempts ended on this node, by kind and outcome"),
    ("stepwell_http_requests_total", "Requests handled, by method, route and status"),
    ("stepwell_live_dropped_total", "Streams ended because the client was slow, silent or no longer authorised"),
];

const GAUGES: [(&str, Unit, &str); 4] = [
    ("stepwell_steps_running", Unit::Count, "Attempts running on this node"),
    ("stepwell_steps_ready", Unit::Count, "Attempts waiting for a slot"),
    ("stepwell_store_bytes", Unit::Bytes, "Size of the store: data (including free space), free, journal"),
    ("stepwell_live_streams", Unit::Count, "Open live streams"),
];

const HISTOGRAMS: [(&str, &[f64], &str); 6] = [
    ("stepwell_step_seconds", &SECONDS, "Duration of attempts, by kind"),
    ("stepwell_commit_batch_size", &SIZES, "Writes per disk sync"),
    ("stepwell_commit_seconds", &SECONDS, "Duration of a group commit, including the sync"),
    ("stepwell_timer_late_seconds", &SECONDS, "Delay between the due time of timers and their firing"),
    ("stepwell_http_request_seconds", &SECONDS, "Time to the response head, by method and route"),
    ("stepwell_live_delay_seconds", &SECONDS, "Time from a commit to writing its event to the socket"),
];

/// Installs the recorder, once per process. Later calls return the same handle.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(handle) = INSTALLED.get() {
        return Ok(handle.clone());
    }
    let mut builder = PrometheusBuilder::new();
    for (name, buckets, _) in HISTOGRAMS {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.into()), buckets)?;
    }
    let handle = builder.install_recorder()?;
    COUNTERS.iter().for_each(|(name, help)| describe_counter!(*name, *help));
    GAUGES.iter().for_each(|(name, unit, help)| describe_gauge!(*name, *unit, *help));
    HISTOGRAMS.iter().for_each(|(name, _, help)| describe_histogram!(*name, *help));
    Ok(INSTALLED.get_or_init(|| handle).clone())
}

/// Keeps observations from accumulating while no client reads them. Ends with `stop`.
pub async fn upkeep(handle: PrometheusHandle, stop: impl Future<Output = ()>) {
    let work = async {
        loop {
            tokio::time::sleep(UPKEEP_EVERY).await;
            handle.run_upkeep();
        }
    };
    tokio::select! {
        () = work => {}
        () = stop => {}
    }
}

/// Counts and times requests. The route is the pattern, so that ids do not create new series.
pub async fn count(request: Request, next: Next) -> Response {
    let method = name_of(request.method());
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_string();
    let begun = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    histogram!("stepwell_http_request_seconds", "method" => method, "route" => route.clone())
        .record(begun.elapsed().as_secs_f64());
    counter!("stepwell_http_requests_total", "method" => method, "route" => route, "status" => status).increment(1);
    response
}

/// Clients can invent methods, and each would create a series.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The state of `/metrics`.
pub struct Endpoint {
    handle: PrometheusHandle,
    store: Arc<dyn Store>,
    token: Option<Secret>,
    sampled: Mutex<Option<Instant>>,
}

impl Endpoint {
    pub fn new(handle: PrometheusHandle, store: Arc<dyn Store>, token: Option<Secret>) -> Endpoint {
        Endpoint { handle, store, token, sampled: Mutex::new(None) }
    }

    /// `GET /metrics`.
    pub fn router(self) -> Router {
        Router::new().route("/metrics", routing::get(metrics_text)).with_state(Arc::new(self))
    }

    async fn sample(&self) {
        if !self.is_due() {
            return;
        }
        match timeout(SAMPLE_WITHIN, self.store.stats(false)).await {
            Ok(Ok(stats)) => {
                gauge!("stepwell_steps_ready").set(stats.ready as f64);
                let data = stats.bytes;
                for (part, bytes) in [("data", data), ("free", stats.free), ("journal", stats.journal)] {
                    gauge!("stepwell_store_bytes", "part" => part).set(bytes as f64);
                }
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot read the size of the store"),
            Err(_) => tracing::warn!("cannot read the size of the store: timed out"),
        }
    }

    /// Lets only one of several concurrent requests take a sample.
    fn is_due(&self) -> bool {
        let mut sampled = self.sampled.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let due = sampled.is_none_or(|at| at.elapsed() >= SAMPLE_EVERY);
        if due {
            *sampled = Some(Instant::now());
        }
        due
    }

    fn admits(&self, peer: SocketAddr, headers: &HeaderMap) -> bool {
        match &self.token {
            Some(token) => bearer(headers).is_some_and(|given| same(given.as_bytes(), token.reveal().as_bytes())),
            // A proxy on this machine forwards requests of others, and a page may use DNS rebinding.
            None => {
                let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
                let forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
                is_loopback(peer.ip()) && !forwarded && host.is_some_and(is_loopback_host)
            }
        }
    }
}

const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

async fn metrics_text(
    State(endpoint): State<Arc<Endpoint>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    if !endpoint.admits(peer, &headers) {
        let (status, body) = match endpoint.token {
            Some(_) => (StatusCode::UNAUTHORIZED, "send the token of `metrics.token` as a bearer token\n"),
            None => (StatusCode::FORBIDDEN, "set `metrics.token` to read this from another machine\n"),
        };
        let mut response = (status, body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        return response;
    }
    endpoint.sample().await;
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (headers, endpoint.handle.render()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_documents() {
        let document = include_str!("../../../docs/operations.md");
        let counters = COUNTERS.map(|(name, _)| (name, "counter"));
        let gauges = GAUGES.map(|(name, ..)| (name, "gauge"));
        let histograms = HISTOGRAMS.map(|(name, ..)| (name, "histogram"));
        for (name, kind) in counters.into_iter().chain(gauges).chain(histograms) {
            assert!(document.contains(&format!("| `{name}` | {kind} |")), "{name}");
        }
    }
}
