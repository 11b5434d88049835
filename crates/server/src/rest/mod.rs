//! REST: every handler reads a request, gives one command to the engine, and shows what came of it.

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
mod runs;
mod secrets;
mod servers;
mod sessions;
mod steps;
mod workflows;

use crate::app::App;
use crate::error::Problem;
use crate::view::ProblemView;
use utoipa::IntoResponses;
use utoipa_axum::router::OpenApiRouter;

/// Everything under `/api/v1`, and the addresses that outsiders call.
pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(workflows::router())
        .merge(graphs::router())
        .merge(runs::router())
        .merge(steps::router())
        .merge(links::router())
        .merge(policies::router())
        .merge(operate::router())
        .merge(nodes::router())
        .merge(admin::router())
        .merge(queries::router())
        .merge(secrets::router())
        .merge(servers::router())
        .merge(channels::router())
        .merge(sessions::router())
        .merge(incoming::router())
}

pub use pages::router as pages;

/// What any call may be answered when it does not work.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "read by the macro only")]
pub enum Problems {
    /// The request cannot be read
    #[response(status = 400, content_type = "application/problem+json")]
    BadRequest(ProblemView),
    /// Nobody knows who asks
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorised(ProblemView),
    /// Whoever asks may not
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(ProblemView),
    /// It is not there, or not yours
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(ProblemView),
    /// The path knows no such method
    #[response(status = 405, content_type = "application/problem+json")]
    Method(ProblemView),
    /// The body did not come in time
    #[response(status = 408, content_type = "application/problem+json")]
    Slow(ProblemView),
    /// It came too late, or is there already
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(ProblemView),
    /// The body is too long
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(ProblemView),
    /// The body is encoded in a way that is not read
    #[response(status = 415, content_type = "application/problem+json")]
    Encoding(ProblemView),
    /// The server does not answer to this name
    #[response(status = 421, content_type = "application/problem+json")]
    Host(ProblemView),
    /// What was sent cannot be used; everything that is wrong with it is listed
    #[response(status = 422, content_type = "application/problem+json")]
    Invalid(ProblemView),
    /// More than is allowed
    #[response(status = 429, content_type = "application/problem+json")]
    TooMany(ProblemView),
    /// Something stored cannot be read: a person must look
    #[response(status = 500, content_type = "application/problem+json")]
    Broken(ProblemView),
    /// Try again later
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(ProblemView),
}

type Answer<T> = Result<T, Problem>;
