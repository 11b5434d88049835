//! REST: every handler parses a request, calls one command of the engine, and returns a view.

mod admin;
mod channels;
mod etag;
mod graphs;
mod incoming;
mod links;
mod nodes;
mod operate;
mod pages;
mod policies;
mod queries;
mod reviews;
mod runs;
mod secrets;
mod servers;
mod sessions;
mod steps;
mod tools;
mod workflows;

use crate::app::App;
use crate::error::Problem;
use crate::view::ProblemView;
use utoipa::IntoResponses;
use utoipa_axum::router::OpenApiRouter;

/// Everything under `/api/v1`, and the URLs that external services call.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(workflows::router())
        .merge(graphs::router())
        .merge(runs::router())
        .merge(steps::router())
        .merge(links::router())
        .merge(policies::router())
        .merge(reviews::router())
        .merge(operate::router())
        .merge(nodes::router())
        .merge(admin::router())
        .merge(queries::router())
        .merge(secrets::router())
        .merge(servers::router())
        .merge(tools::router())
        .merge(channels::router())
        .merge(sessions::router())
        .merge(incoming::router())
}

pub use pages::router as pages;

/// The error responses of every operation.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "read by the macro only")]
pub enum Problems {
    /// The request cannot be parsed
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(ProblemView),
    /// Authentication failed
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorised(ProblemView),
    /// The caller lacks the right
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(ProblemView),
    /// It does not exist, or belongs to another organisation
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(ProblemView),
    /// The path does not support this method
    #[response(status = 405, content_type = "application/problem+json")]
    Method(ProblemView),
    /// The body did not arrive in time
    #[response(status = 408, content_type = "application/problem+json")]
    Slow(ProblemView),
    /// The current state does not allow it, or it exists already
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(ProblemView),
    /// The body is too long
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(ProblemView),
    /// The content encoding is not supported
    #[response(status = 415, content_type = "application/problem+json")]
    Encoding(ProblemView),
    /// The server does not accept this host name
    #[response(status = 421, content_type = "application/problem+json")]
    Host(ProblemView),
    /// The request is invalid; all errors are listed
    #[response(status = 422, content_type = "application/problem+json")]
    Invalid(ProblemView),
    /// A rate or plan limit is exceeded
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(ProblemView),
    /// Stored data cannot be read: an operator must investigate
    #[response(status = 500, content_type = "application/problem+json")]
    Broken(ProblemView),
    /// Try again later
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemView),
}

type Answer<T> = Result<T, Problem>;
