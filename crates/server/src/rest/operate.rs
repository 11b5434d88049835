//! Organisations, plans and usage; the audit trail.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use stepwell_engine::Subscription;
use stepwell_engine::commands::AuditQuery;
use stepwell_store::OrgId;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(organisations, create))
        .routes(routes!(plan))
        .routes(routes!(usage))
        .routes(routes!(audit))
        .routes(routes!(verify))
}

/// All organisations of this server; for operators
#[utoipa::path(get, path = "/api/v1/organisations", operation_id = "listOrganisations",
    tag = "organisations", responses(
    (status = 200, description = "All organisations", body = Page<OrganisationView>), Problems))]
async fn organisations(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<OrganisationView>>> {
    let all = app.engine.organisations(&caller).list().await?;
    Ok(Reply(all.into_iter().map(OrganisationView::from).collect::<Vec<_>>().into()))
}

/// Create an organisation with a first user `admin`, whose key is shown only in the response
#[utoipa::path(post, path = "/api/v1/organisations", operation_id = "createOrganisation",
    tag = "organisations", request_body = NewOrganisationRequest,
    responses((status = 201, description = "Created", body = Data<NewOrganisationView>), Problems))]
async fn create(
    State(app): State<App>,
    Auth(caller): Auth,
    Json(request, ..): Json<NewOrganisationRequest>,
) -> Answer<(StatusCode, Reply<Data<NewOrganisationView>>)> {
    let (made, admin_key) = app.engine.organisations(&caller).create(&request.name, request.plan).await?;
    Ok((StatusCode::CREATED, Reply(Data { data: NewOrganisationView { is: made.into(), admin_key } })))
}

/// Give an organisation another plan or custom limits; for operators
#[utoipa::path(put, path = "/api/v1/organisations/{id}/plan", operation_id = "setPlan", tag = "organisations",
    params(("id" = i64, Path, description = "Number of the organisation")), request_body = PlanRequest,
    responses((status = 200, description = "Changed", body = Data<OrganisationView>), Problems))]
async fn plan(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(request, ..): Json<PlanRequest>,
) -> Answer<Reply<Data<OrganisationView>>> {
    let number = id.parse().map_err(|_| Problem::not_found(format!("there is no organisation {id:?}")))?;
    if request.plan.is_none() && request.limits.is_none() {
        return Err(Problem::input("plan", "a plan or limits are required"));
    }
    let to = Subscription { plan: request.plan, limits: request.limits.map(Into::into) };
    let changed = app.engine.organisations(&caller).change_plan(OrgId(number), to).await?;
    Ok(Reply(Data { data: changed.into() }))
}

/// How much of its plan the organisation has used
#[utoipa::path(get, path = "/api/v1/usage", operation_id = "getUsage", tag = "organisations", responses(
    (status = 200, description = "This month's usage", body = Data<UsageView>), Problems))]
async fn usage(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<UsageView>>> {
    Ok(Reply(Data { data: app.engine.organisations(&caller).usage().await?.into() }))
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct AuditFilters {
    by: Option<String>,
    /// For example `run.cancel`
    action: Option<String>,
    /// The target of the action
    target: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

/// The audit trail, newest first; for administrators
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "listAuditRows",
    tag = "organisations", params(AuditFilters), responses(
    (status = 200, description = "A page of the audit trail", body = Page<AuditView>), Problems))]
async fn audit(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(filters): Params<AuditFilters>,
) -> Answer<Reply<Page<AuditView>>> {
    let bad = || Problem::input("cursor", "this is not the `next` of an earlier page");
    let before = filters.cursor.map(|cursor| cursor.parse().map_err(|_| bad())).transpose()?;
    let limit = page_size(filters.limit, 50)?;
    let AuditFilters { by, action, target, .. } = filters;
    let rows = app.engine.audit(&caller).list(AuditQuery { by, action, target, before, limit }).await?;
    let next = rows.last().filter(|_| rows.len() == limit as usize).map(|row| row.id.to_string());
    Ok(Reply(Page { data: rows.into_iter().map(AuditView::from).collect(), next }))
}

/// Verify the hash chain of the audit trail from the first row to the last
#[utoipa::path(get, path = "/api/v1/audit/verify", operation_id = "verifyAuditTrail", tag = "organisations", responses(
    (status = 200, description = "The verdict", body = Data<AuditVerdict>), Problems))]
async fn verify(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Data<AuditVerdict>>> {
    let verdict = app.engine.audit(&caller).verify().await?;
    Ok(Reply(Data { data: AuditVerdict { rows: verdict.rows, broken_at: verdict.broken_at } }))
}
