//! Reviews: what agents' keys wrote, and the answers of people.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params};
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(reviews))
        .routes(routes!(review))
        .routes(routes!(accept))
        .routes(routes!(refuse))
}

/// Which reviews to list
#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Filters {
    /// Also those that were answered or whose version is not the current one
    all: Option<bool>,
}

/// The reviews that wait for a person, oldest first
#[utoipa::path(get, path = "/api/v1/reviews", operation_id = "listReviews", tag = "reviews", params(Filters), responses(
    (status = 200, description = "The reviews", body = Page<ReviewSummary>), Problems))]
async fn reviews(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(filters): Params<Filters>,
) -> Answer<Reply<Page<ReviewSummary>>> {
    let all = app.engine.reviews(&caller).list(filters.all.unwrap_or(false)).await?;
    Ok(Reply(all.into_iter().map(ReviewSummary::from).collect::<Vec<_>>().into()))
}

/// A review with what it changes, what is new in it, and what the simulation and the policies say
#[utoipa::path(get, path = "/api/v1/reviews/{id}", operation_id = "getReview", tag = "reviews",
    params(("id" = String, Path, description = "Id, or the workflow if one review of it is open")),
    responses((status = 200, description = "The review", body = Data<ReviewDetail>), Problems))]
async fn review(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Answer<Reply<Data<ReviewDetail>>> {
    Ok(Reply(Data { data: app.engine.reviews(&caller).get(&id).await?.into() }))
}

/// Accept what was shown, as a version or for one run. Refused to agents' keys
#[utoipa::path(post, path = "/api/v1/reviews/{id}/accept", operation_id = "acceptReview", tag = "reviews",
    params(("id" = String, Path, description = "Id, or the workflow if one review of it is open")),
    request_body = ReviewRequest,
    responses((status = 200, description = "The accepted review", body = Data<ReviewSummary>), Problems))]
async fn accept(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(request, ..): Json<ReviewRequest>,
) -> Answer<Reply<Data<ReviewSummary>>> {
    Ok(Reply(Data { data: app.engine.reviews(&caller).accept(&id, request.into()).await?.into() }))
}

/// Refuse what was shown, with a comment that the agent can read. Refused to agents' keys
#[utoipa::path(post, path = "/api/v1/reviews/{id}/refuse", operation_id = "refuseReview", tag = "reviews",
    params(("id" = String, Path, description = "Id, or the workflow if one review of it is open")),
    request_body = ReviewRequest,
    responses((status = 200, description = "The refused review", body = Data<ReviewSummary>), Problems))]
async fn refuse(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(request, ..): Json<ReviewRequest>,
) -> Answer<Reply<Data<ReviewSummary>>> {
    Ok(Reply(Data { data: app.engine.reviews(&caller).refuse(&id, request.into()).await?.into() }))
}
