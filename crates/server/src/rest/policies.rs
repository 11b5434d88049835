//! Policies of the organisation: calls that are denied, held for approval, rate-limited or never repeated.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Json;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use std::collections::BTreeMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(policies))
        .routes(routes!(policy, put_policy, remove_policy))
        .routes(routes!(policy_log))
        .routes(routes!(test_policies))
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

/// What a policy in the mode `log` would have stopped since it was set
#[utoipa::path(get, path = "/api/v1/policies/{policy}/log", operation_id = "getPolicyLog", tag = "policies",
    params(("policy" = String, Path, description = "Name of the policy")),
    responses((status = 200, description = "Counts and samples", body = Data<PolicyLogView>), Problems))]
async fn policy_log(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(policy): Path<String>,
) -> Answer<Reply<Data<PolicyLogView>>> {
    Ok(Reply(Data { data: app.engine.policies(&caller).log(&policy).await?.into() }))
}

/// Try policies on the calls of past runs; changes nothing
#[utoipa::path(post, path = "/api/v1/policy-tests", operation_id = "testPolicies", tag = "policies",
    request_body = PolicyTestRequest,
    responses((status = 200, description = "What they would have done", body = Data<PolicyTestView>), Problems))]
async fn test_policies(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<PolicyTestRequest>,
) -> Answer<Reply<Data<PolicyTestView>>> {
    let named = |policies: BTreeMap<String, PolicyRequest>| {
        policies.into_iter().map(|(name, policy)| (name, policy.into())).collect()
    };
    let test = app.engine.policies(&caller).test(request.policies.map(named), request.since.0).await?;
    Ok(Reply(Data { data: test.into() }))
}
