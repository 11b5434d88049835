//! REST: every handler parses a request, calls one command of the engine, and returns a view.

mod admin;
mod audit;
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
        .merge(audit::router())
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

/// The error responses of every operation. `description::problems` replaces them by those that each operation has.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "read by the macro only")]
pub enum Problems {
    /// Everything that can go wrong
    #[response(status = 500, content_type = "application/problem+json")]
    Any(ProblemView),
}

type Answer<T> = Result<T, Problem>;
