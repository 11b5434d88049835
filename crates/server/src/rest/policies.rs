//! Policies of the organisation: calls that are denied, held for approval, rate-limited or never repeated.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Json;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(policies)).routes(routes!(policy, put_policy, remove_policy))
}

/// The policies of the organisation, which apply to all its workflows
#[utoipa::path(get, path = "/api/v1/policies", operation_id = "listPolicies", tag = "policies", responses(
    (status = 200, description = "All policies", body = Page<PolicyView>), Problems))]
async fn policies(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<PolicyView>>> {
    let all = app.engine.policies(&caller).list().await?;
    Ok(Reply(all.into_iter().map(PolicyView::from).collect::<Vec<_>>().into()))
}

/// A policy
#[utoipa::path(get, path = "/api/v1/policies/{policy}", operation_id = "getPolicy", tag = "policies",
    params(("policy" = String, Path, description = "Name of the policy")),
    responses((status = 200, description = "The policy", body = Data<PolicyView>), Problems))]
async fn policy(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(policy): Path<String>,
) -> Answer<Reply<Data<PolicyView>>> {
    Ok(Reply(Data { data: app.engine.policies(&caller).get(&policy).await?.into() }))
}

/// Create or replace a policy; takes effect from the next call
#[utoipa::path(put, path = "/api/v1/policies/{policy}", operation_id = "putPolicy", tag = "policies",
    params(("policy" = String, Path, description = "Name of the policy")), request_body = PolicyRequest,
    responses((status = 200, description = "The stored policy", body = Data<PolicyView>), Problems))]
async fn put_policy(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(policy): Path<String>,
    Json(request, ..): Json<PolicyRequest>,
) -> Answer<Reply<Data<PolicyView>>> {
    Ok(Reply(Data { data: app.engine.policies(&caller).put(&policy, request.into()).await?.into() }))
}

/// Remove a policy
#[utoipa::path(delete, path = "/api/v1/policies/{policy}", operation_id = "deletePolicy", tag = "policies",
    params(("policy" = String, Path, description = "Name of the policy")),
    responses((status = 204, description = "Removed"), Problems))]
async fn remove_policy(State(app): State<App>, Auth(caller): Auth, Path(policy): Path<String>) -> Answer<StatusCode> {
    app.engine.policies(&caller).remove(&policy).await?;
    Ok(StatusCode::NO_CONTENT)
}
