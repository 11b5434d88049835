//! Error responses: RFC 9457 problems with stable codes.

use crate::view::{FaultView, ProblemView};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use stepwell_core::event::Ignored;
use stepwell_engine::Error;

/// How long to wait for a run to end where no more may run at the same time. When one ends is not known.
const FULL: Duration = Duration::from_secs(5);

/// An error response. Converted from the engine's errors, or built directly for errors that only HTTP has.
#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: String,
    pub errors: Vec<FaultView>,
    /// What is suspicious in a definition beside its errors.
    pub warnings: Box<[FaultView]>,
    pub retry_after: Option<Duration>,
    pub status_now: Option<Box<str>>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        let (errors, warnings) = (Vec::new(), Box::default());
        Problem { status, code, detail: detail.into(), errors, warnings, retry_after: None, status_now: None }
    }

    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// One part of the request is invalid.
    pub fn input(path: &str, message: impl Into<String>) -> Problem {
        let message = message.into();
        let fault = FaultView::at(path, message.clone());
        let detail = if path.is_empty() { message } else { format!("{path}: {message}") };
        Problem { errors: vec![fault], ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-input", detail) }
    }

    pub fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub fn too_many(wait: Duration) -> Problem {
        let detail = "rate limit exceeded: wait for the time in Retry-After";
        Problem { retry_after: Some(wait), ..Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", detail) }
    }

    /// Adds the current status of the run.
    pub fn now(mut self, status: impl Into<String>) -> Problem {
        self.status_now = Some(status.into().into());
        self
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let detail = error.to_string();
        let (status, code) = match &error {
            Error::Definition(faults) => {
                let count = faults.list.len() + faults.more;
                let detail = format!("the definition has {count} fault{}", if count == 1 { "" } else { "s" });
                let (status, code) = status_and_code(&error);
                let problem = Problem::new(status, code, detail);
                let views = |faults: &[stepwell_formats::Fault]| faults.iter().map(FaultView::from).collect();
                return Problem { errors: views(&faults.list), warnings: views(&faults.warnings).into(), ..problem };
            }
            Error::Input { path, message } => return Problem::input(path, message.clone()),
            Error::Inputs(faults) => {
                let fault = |(path, message): &(String, String)| FaultView::at(path, message.clone());
                let (status, code) = status_and_code(&error);
                return Problem { errors: faults.iter().map(fault).collect(), ..Problem::new(status, code, detail) };
            }
            _ => status_and_code(&error),
        };
        let retry_after = (status == StatusCode::TOO_MANY_REQUESTS).then_some(FULL);
        Problem { retry_after, ..Problem::new(status, code, detail) }
    }
}

fn status_and_code(error: &Error) -> (StatusCode, &'static str) {
    match error {
        Error::Definition(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-definition"),
        Error::Input { .. } | Error::Inputs(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-input"),
        Error::NotNow(_) => (StatusCode::CONFLICT, "not-now"),
        Error::Changed(_) => (StatusCode::CONFLICT, "changed-meanwhile"),
        Error::NotFound { .. } => (StatusCode::NOT_FOUND, "not-found"),
        Error::Unauthorised(_) => (StatusCode::UNAUTHORIZED, "unauthorised"),
        Error::Forbidden { .. } => (StatusCode::FORBIDDEN, "forbidden"),
        Error::Refused(_) => (StatusCode::FORBIDDEN, "refused"),
        Error::Conflict(ignored) => (StatusCode::CONFLICT, conflict(*ignored)),
        Error::KeyReused(_) => (StatusCode::CONFLICT, "idempotency-key-reused"),
        Error::Exists { .. } => (StatusCode::CONFLICT, "exists"),
        // Runs end; a larger plan does not come by waiting.
        Error::Limit { limit: "concurrent_runs", .. } => (StatusCode::TOO_MANY_REQUESTS, "plan-limit"),
        Error::Limit { .. } => (StatusCode::FORBIDDEN, "plan-limit"),
        Error::Full => (StatusCode::TOO_MANY_REQUESTS, "concurrency-limit"),
        Error::Disabled(_) => (StatusCode::CONFLICT, "workflow-disabled"),
        Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        Error::Broken(_) => (StatusCode::INTERNAL_SERVER_ERROR, "broken"),
    }
}

/// The stable code of an error, as responses have it.
pub fn code_of(error: &Error) -> &'static str {
    status_and_code(error).1
}

fn conflict(ignored: Ignored) -> &'static str {
    match ignored {
        Ignored::NotStarted => "not-started",
        Ignored::RunFinished => "run-finished",
        Ignored::NothingToRetry => "nothing-to-retry",
        Ignored::OtherDialect => "other-dialect",
        Ignored::UnknownStep => "unknown-step",
        Ignored::StaleAttempt => "stale-attempt",
        // The second and the third answer admissions and timers, which no request sends.
        Ignored::NotWaiting | Ignored::AlreadyStarted | Ignored::NotDue => "not-waiting",
        Ignored::StepFinished => "step-finished",
        Ignored::OtherDigest => "other-digest",
        Ignored::Repeated => "repeated",
        Ignored::ChangeNotAllowed => "not-now",
    }
}

/// The header that carries the request id.
pub const REQUEST_ID: &str = "x-request-id";

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let view = ProblemView {
            kind: format!("/docs/errors#{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error").to_string(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code.to_string(),
            request_id: None,
            errors: self.errors,
            warnings: self.warnings.into(),
            status_now: self.status_now.map(Into::into),
        };
        let body = serde_json::to_vec(&view).expect("a problem has text keys only");
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"stepwell\""));
        }
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // For the log entry, which also has the request.
        response.extensions_mut().insert(view);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::CODES;
    use std::collections::BTreeSet;

    /// Every error code is documented at the address that its response links to.
    #[test]
    fn every_code_is_on_the_page_of_errors() {
        let sources = [
            include_str!("error.rs"),
            include_str!("body.rs"),
            include_str!("auth.rs"),
            include_str!("guard.rs"),
            include_str!("listen.rs"),
            include_str!("rest/incoming.rs"),
            include_str!("rest/pages.rs"),
            include_str!("rest/runs/control.rs"),
            include_str!("rest/runs/mod.rs"),
            include_str!("rest/runs/start.rs"),
            include_str!("rest/steps.rs"),
            include_str!("rest/workflows.rs"),
        ];
        let calls = sources.iter().flat_map(|source| source.split("Problem::new(").chain(source.split("bad_request(")));
        let codes = calls.filter_map(|call| call.split([';', '{']).next()?.split('"').nth(1));
        let codes: BTreeSet<&str> =
            codes.filter(|code| code.chars().all(|c| c.is_ascii_lowercase() || c == '-')).collect();
        assert!(codes.contains("cross-origin") && codes.contains("busy"), "{codes:?}");
        assert!(codes.contains("request-timeout"), "{codes:?}");
        for code in codes {
            assert!(CODES.iter().any(|(known, _)| *known == code), "{code} is not explained");
        }
    }

    #[test]
    fn only_what_waiting_can_fix_is_429_and_says_how_long() {
        let limit = |limit| Error::Limit { limit, message: "no".into() };
        let check = |error, status, code| {
            let problem = Problem::from(error);
            assert_eq!((problem.status.as_u16(), problem.code), (status, code));
            assert_eq!(problem.retry_after.is_some(), status == 429, "{code}");
        };
        check(limit("concurrent_runs"), 429, "plan-limit");
        check(limit("executions_per_month"), 403, "plan-limit");
        check(limit("definition"), 403, "plan-limit");
        check(Error::Full, 429, "concurrency-limit");
    }

    /// Leading to them takes two requests in one instant, or an attempt that ends while a request is handled.
    #[test]
    fn conflicts_that_only_a_race_leads_to_have_their_codes() {
        for (ignored, code) in [(Ignored::StaleAttempt, "stale-attempt"), (Ignored::NotStarted, "not-started")] {
            let problem = Problem::from(Error::Conflict(ignored));
            assert_eq!((problem.status, problem.code), (StatusCode::CONFLICT, code));
        }
    }
}
