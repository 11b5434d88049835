//! Organisations, plans and usage.

use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::Json;
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use stepwell_engine::Subscription;
use stepwell_store::OrgId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(organisations, create)).routes(routes!(plan)).routes(routes!(usage))
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
