//! Workflows: define, list, change, enable, delete; their versions and schedules.

use super::etag::tagged;
use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params, Raw};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use stepwell_core::outline::outline;
use stepwell_core::time::Time;
use stepwell_engine::commands::{self as engine, Defining, Right, Source, WorkflowQuery};
use stepwell_engine::{Caller, Checked, Compiled, Error};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, put, switch, delete))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(schedule))
        .routes(routes!(schedules))
        .routes(routes!(add_schedule))
        .routes(routes!(remove_schedule))
        .routes(routes!(restore))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(rotate))
        .routes(routes!(check))
}

/// Filters for workflows, ordered by name.
#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Filters {
    /// `name=value`; a workflow must have all of several separated by commas
    label: Option<String>,
    /// Part of the name.
    q: Option<String>,
    /// Deleted workflows instead of the others, latest deletion first.
    deleted: Option<bool>,
    /// What each workflow has besides: `definition`, `graph` or both, separated by commas
    include: Option<String>,
    /// Maximum number of entries; 50 by default
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

/// What an agent says about a definition
#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct Why {
    /// Why it is written, for the person who reviews it
    reason: Option<String>,
}

/// The workflows of the organisation, by name
#[utoipa::path(get, path = "/api/v1/workflows", operation_id = "listWorkflows",
    tag = "workflows", params(Filters), responses(
    (status = 200, description = "A page of workflows", body = Page<ListedWorkflow>), Problems))]
async fn list(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(filters): Params<Filters>,
) -> Answer<Reply<Page<ListedWorkflow>>> {
    let include = Include::parse(filters.include.as_deref())?;
    let query = WorkflowQuery {
        text: filters.q,
        labels: filters.label.iter().flat_map(|labels| labels.split(',')).map(str::to_string).collect(),
        deleted: filters.deleted.unwrap_or(false),
        cursor: filters.cursor,
        limit: page_size(filters.limit, 50)?,
    };
    let page = app.engine.workflows(&caller).page(query).await?;
    let listed = page.workflows.iter().map(|(compiled, state)| ListedWorkflow {
        definition: include.definition.then(|| definition_value(compiled)),
        graph: include.graph.then(|| GraphView::new(outline(&compiled.definition), compiled.row.version)),
        summary: WorkflowSummary::new(compiled, state),
    });
    Ok(Reply(Page { data: listed.collect(), next: page.next }))
}

/// What a list of workflows includes besides the summaries.
#[derive(Clone, Copy, Default)]
struct Include {
    definition: bool,
    graph: bool,
}

impl Include {
    fn parse(text: Option<&str>) -> Answer<Include> {
        let mut include = Include::default();
        for name in text.into_iter().flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "definition" => include.definition = true,
                "graph" => include.graph = true,
                _ => return Err(Problem::input("include", format!("{name:?} is not one of definition, graph"))),
            }
        }
        Ok(include)
    }
}

/// Create a workflow from a definition in JSON or YAML, in any dialect
///
/// 201 for a new workflow, 200 if an identical one exists, 409 if another one has that name: use `PUT` to create its
/// next version.
#[utoipa::path(post, path = "/api/v1/workflows", operation_id = "createWorkflow", tag = "workflows", params(Why),
    request_body(content((serde_json::Value = "application/json"), (String = "application/yaml")),
        description = "The definition"),
    responses(
        (status = 200, description = "An identical workflow exists", body = DefinedView),
        (status = 201, description = "Created", body = DefinedView), Problems))]
async fn create(State(app): State<App>, Auth(caller): Auth, Params(why): Params<Why>, raw: Raw) -> Answer<Response> {
    caller.check(Right::Define)?;
    let text = text(&raw.bytes)?;
    let checked = app.engine.workflows(&caller).check(Source { text, file: None }).await?;
    define(&app, &caller, checked, Defining { after: Some(0), reason: why.reason }).await
}

async fn define(app: &App, caller: &Caller, checked: Checked, defining: Defining) -> Answer<Response> {
    let workflows = app.engine.workflows(caller);
    let missing = if caller.may(Right::Read) { workflows.missing(&checked).await? } else { Vec::new() };
    let defined = workflows.define_checked(checked, defining).await?;
    let proposed = defined.review.as_ref().is_some_and(|review| review.is.version.is_none());
    let status = match defined.changed && defined.compiled.row.version == 1 {
        _ if proposed => StatusCode::ACCEPTED,
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    let state = workflows.state(&defined.compiled).await?;
    let data = WorkflowSummary::defined(&defined, &state);
    let warnings = defined.warnings.iter().chain(&missing).map(FaultView::from).collect();
    let review = defined.review.map(ReviewSummary::from);
    Ok((status, Reply(DefinedView { data, review, warnings })).into_response())
}

/// A definition must be text.
fn text(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes)
        .map_err(|_| Problem::bad_request("not-text", "a definition must be UTF-8 text, JSON or YAML"))
}

fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A workflow with its definition. A deleted one is found by its id
#[utoipa::path(get, path = "/api/v1/workflows/{id}", operation_id = "getWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), responses(
        (status = 200, description = "The workflow", body = Data<Workflow>),
        (status = 304, description = "Unchanged since `If-None-Match`"), Problems))]
async fn get(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let (compiled, deleted_at) = app.engine.workflows(&caller).look_up(&id).await?;
    Ok(tagged(&Data { data: view(&app, &caller, (&compiled, deleted_at)).await? }, &headers))
}

async fn view(app: &App, caller: &Caller, (compiled, deleted_at): (&Compiled, Option<Time>)) -> Answer<Workflow> {
    let state = engine::State { deleted_at, ..app.engine.workflows(caller).state(compiled).await? };
    let webhooks = match caller.may(Right::Define) && deleted_at.is_none() {
        true => app.engine.workflows(caller).hooks(&compiled.row.workflow).await?,
        false => Vec::new(),
    };
    let webhooks = webhooks.into_iter().map(|hook| format!("{}/in/{}", app.public_url, hook.token)).collect();
    Ok(Workflow::new(compiled, &state, webhooks))
}

/// Create the next version of a workflow, or the first
///
/// Running runs keep their version. With `If-Match`, only if the workflow has not changed.
#[utoipa::path(put, path = "/api/v1/workflows/{id}", operation_id = "putWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of an earlier response"), Why),
    request_body(content((serde_json::Value = "application/json"), (String = "application/yaml")),
        description = "The definition"),
    responses(
        (status = 200, description = "The newest version is the given definition", body = DefinedView),
        (status = 201, description = "Created: there was no workflow with that name", body = DefinedView),
        (status = 202, description = "An agent's proposal: the version in `data` stays current until a person accepts \
            the `review`", body = DefinedView),
        (status = 412, description = "The workflow has changed since `If-Match`", body = ProblemView,
            content_type = "application/problem+json"), Problems))]
async fn put(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    given: (HeaderMap, Params<Why>),
    raw: Raw,
) -> Answer<Response> {
    let (headers, Params(why)) = given;
    caller.check(Right::Define)?;
    let text = text(&raw.bytes)?;
    let before = found(app.engine.workflows(&caller).find(&id).await)?;
    if headers.contains_key(IF_MATCH) && !is_as(&app, &caller, before.as_deref(), &headers).await? {
        let detail = "the workflow does not match If-Match: read it again";
        return Err(Problem::new(StatusCode::PRECONDITION_FAILED, "changed-meanwhile", detail));
    }
    let checked = app.engine.workflows(&caller).check(Source { text, file: None }).await?;
    let name = &checked.definition.name;
    match before {
        None if id.starts_with("wf_") => Err(Error::NotFound { what: "workflow", name: id }.into()),
        None if id != *name => {
            let message =
                format!("the definition is named {name:?} and the URL says {id:?}: use the same name in both");
            Err(Problem::input("name", message))
        }
        Some(before) if before.row.name != *name => {
            let message = format!("the workflow is named {:?}, and names cannot change", before.row.name);
            Err(Problem::input("name", message))
        }
        // With `If-Match`, a change before the write is a conflict.
        Some(before) if headers.contains_key(IF_MATCH) => {
            define(&app, &caller, checked, Defining { after: Some(before.row.version), reason: why.reason }).await
        }
        _ => define(&app, &caller, checked, Defining { after: None, reason: why.reason }).await,
    }
}

/// Whether the workflow still has one of the tags in `If-Match`.
async fn is_as(app: &App, caller: &Caller, before: Option<&Compiled>, headers: &HeaderMap) -> Answer<bool> {
    let Some(before) = before else { return Ok(false) };
    let shown = tagged(&Data { data: view(app, caller, (before, None)).await? }, &HeaderMap::new());
    let tag = shown.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default();
    let wanted = headers.get(IF_MATCH).and_then(|wanted| wanted.to_str().ok()).unwrap_or_default();
    Ok(wanted.split(',').any(|one| matches!(one.trim(), "*") || one.trim() == tag))
}

/// Enable or disable a workflow, or make it a part of a set
///
/// A disabled workflow refuses triggers and skips its schedule. Nothing is deleted.
#[utoipa::path(patch, path = "/api/v1/workflows/{id}", operation_id = "updateWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), request_body = WorkflowSwitch, responses(
        (status = 200, description = "Changed", body = Data<WorkflowSummary>), Problems))]
async fn switch(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(to, ..): Json<WorkflowSwitch>,
) -> Answer<Reply<Data<WorkflowSummary>>> {
    let workflows = app.engine.workflows(&caller);
    if to.enabled.is_none() && to.set.is_none() {
        return Err(Problem::input("enabled", "`enabled` or `set` is required"));
    }
    if let Some(set) = to.set {
        workflows.assign(&id, Some(set).filter(|set| !set.is_empty())).await?;
    }
    if let Some(enabled) = to.enabled {
        workflows.enable(&id, enabled).await?;
    }
    summary(&app, &caller, &id).await
}

async fn summary(app: &App, caller: &Caller, id: &str) -> Answer<Reply<Data<WorkflowSummary>>> {
    let compiled = app.engine.workflows(caller).find(id).await?;
    let state = app.engine.workflows(caller).state(&compiled).await?;
    Ok(Reply(Data { data: WorkflowSummary::new(&compiled, &state) }))
}

/// Delete a workflow; running runs finish, and it can be restored
#[utoipa::path(delete, path = "/api/v1/workflows/{id}", operation_id = "deleteWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), responses(
        (status = 204, description = "Deleted"), Problems))]
async fn delete(State(app): State<App>, Auth(caller): Auth, Path(id): Path<String>) -> Answer<StatusCode> {
    app.engine.workflows(&caller).delete(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Restore a deleted workflow, by its id or by the name of the one that was deleted last
///
/// It gets its schedules back, and new webhook URLs. 409 while another workflow has its name.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/restore", operation_id = "restoreWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), responses(
        (status = 200, description = "Restored", body = Data<WorkflowSummary>), Problems))]
async fn restore(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Answer<Reply<Data<WorkflowSummary>>> {
    let compiled = app.engine.workflows(&caller).restore(&id).await?;
    let state = app.engine.workflows(&caller).state(&compiled).await?;
    Ok(Reply(Data { data: WorkflowSummary::new(&compiled, &state) }))
}

/// All versions of a workflow, newest first
#[utoipa::path(get, path = "/api/v1/workflows/{id}/versions", operation_id = "listVersions", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), responses(
        (status = 200, description = "All versions", body = Page<VersionView>), Problems))]
async fn versions(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Answer<Reply<Page<VersionView>>> {
    let all = app.engine.workflows(&caller).versions(&id).await?;
    Ok(Reply(all.into_iter().map(VersionView::from).collect::<Vec<_>>().into()))
}

/// One version of a workflow
#[utoipa::path(get, path = "/api/v1/workflows/{id}/versions/{version}", operation_id = "getVersion", tag = "workflows",
    params(("id" = String, Path, description = "Id or name"), ("version" = u32, Path, description = "The version")),
    responses((status = 200, description = "The version", body = Data<VersionView>), Problems))]
async fn version(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((id, version)): Path<(String, String)>,
) -> Answer<Reply<Data<VersionView>>> {
    let number = version.parse().map_err(|_| Problem::not_found(format!("there is no version {version:?}")))?;
    let compiled = app.engine.workflows(&caller).version(&id, number).await?;
    Ok(Reply(Data { data: compiled.row.clone().into() }))
}

/// When a workflow will start by itself: the next ten ticks of each schedule
#[utoipa::path(get, path = "/api/v1/workflows/{id}/schedule", operation_id = "listSchedulesOfWorkflow",
    tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), responses(
        (status = 200, description = "Its schedules", body = Page<ScheduleSummary>), Problems))]
async fn schedule(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Answer<Reply<Page<ScheduleSummary>>> {
    let all = app.engine.workflows(&caller).schedule(&id).await?;
    Ok(Reply(all.into_iter().map(ScheduleSummary::from).collect::<Vec<_>>().into()))
}

/// All schedules of the organisation
#[utoipa::path(get, path = "/api/v1/schedules", operation_id = "listSchedules", tag = "workflows", responses(
    (status = 200, description = "All schedules", body = Page<ScheduleSummary>), Problems))]
async fn schedules(State(app): State<App>, Auth(caller): Auth) -> Answer<Reply<Page<ScheduleSummary>>> {
    let all = app.engine.workflows(&caller).schedules().await?;
    Ok(Reply(all.into_iter().map(ScheduleSummary::from).collect::<Vec<_>>().into()))
}

/// Start a workflow again and again, besides what its definition says
///
/// The schedule belongs to the caller: its runs have the rights that the caller has at that time. New versions of the
/// workflow leave it alone; deleting the workflow removes it.
#[utoipa::path(post, path = "/api/v1/workflows/{id}/schedules", operation_id = "createSchedule", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), request_body = NewSchedule, responses(
        (status = 201, description = "Added", body = Data<ScheduleSummary>), Problems))]
async fn add_schedule(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(schedule, ..): Json<NewSchedule>,
) -> Answer<(StatusCode, Reply<Data<ScheduleSummary>>)> {
    let added = app.engine.workflows(&caller).add_schedule(&id, &schedule.written()).await?;
    Ok((StatusCode::CREATED, Reply(Data { data: added.into() })))
}

/// Remove a schedule that was added with a request; its runs continue
///
/// Schedules of a definition go with the definition.
#[utoipa::path(delete, path = "/api/v1/schedules/{id}", operation_id = "deleteSchedule", tag = "workflows",
    params(("id" = String, Path, description = "Id of the schedule")), responses(
        (status = 204, description = "Removed"), Problems))]
async fn remove_schedule(State(app): State<App>, Auth(caller): Auth, Path(id): Path<String>) -> Answer<StatusCode> {
    app.engine.workflows(&caller).remove_schedule(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Hold new runs of a workflow, or of one concurrency key: they are accepted and wait in the queue
#[utoipa::path(post, path = "/api/v1/workflows/{id}/pause", operation_id = "pauseWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), request_body(content = Option<PauseRequest>), responses(
        (status = 200, description = "Held", body = Data<WorkflowSummary>), Problems))]
async fn pause(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(what, ..): Json<PauseRequest>,
) -> Answer<Reply<Data<WorkflowSummary>>> {
    app.engine.workflows(&caller).pause(&id, what.key).await?;
    summary(&app, &caller, &id).await
}

/// Release held runs
#[utoipa::path(post, path = "/api/v1/workflows/{id}/resume", operation_id = "resumeWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), request_body(content = Option<PauseRequest>), responses(
        (status = 200, description = "Released", body = Data<WorkflowSummary>), Problems))]
async fn resume(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Json(what, ..): Json<PauseRequest>,
) -> Answer<Reply<Data<WorkflowSummary>>> {
    app.engine.workflows(&caller).resume(&id, what.key).await?;
    summary(&app, &caller, &id).await
}

/// Give a workflow new webhook URLs; the old ones stop working
#[utoipa::path(post, path = "/api/v1/workflows/{id}/rotate-webhooks", operation_id = "rotateWebhooks",
    tag = "workflows",
    params(("id" = String, Path, description = "Id or name")), responses(
        (status = 200, description = "The new URLs", body = Page<String>), Problems))]
async fn rotate(State(app): State<App>, Auth(caller): Auth, Path(id): Path<String>) -> Answer<Reply<Page<String>>> {
    let hooks = app.engine.workflows(&caller).rotate_hooks(&id).await?;
    let urls: Vec<String> = hooks.iter().map(|hook| format!("{}/in/{}", app.public_url, hook.token)).collect();
    Ok(Reply(urls.into()))
}

#[derive(Clone, Default, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
struct CheckOptions {
    /// Warn also about what the definition uses and this installation does not have
    missing: Option<bool>,
}

/// Check a definition without storing it: 204, 200 with warnings, or 422 with all its errors
#[utoipa::path(post, path = "/api/v1/check", operation_id = "checkDefinition", tag = "workflows", params(CheckOptions),
    request_body(content((serde_json::Value = "application/json"), (String = "application/yaml")),
        description = "The definition"),
    responses(
        (status = 200, description = "The definition is valid and has warnings", body = Data<WarningsView>),
        (status = 204, description = "The definition is valid"), Problems))]
async fn check(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(options): Params<CheckOptions>,
    raw: Raw,
) -> Answer<Response> {
    let source = Source { text: text(&raw.bytes)?, file: None };
    let workflows = app.engine.workflows(&caller);
    let checked = workflows.check_named(source).await?;
    let mut warnings = checked.warnings.clone();
    if options.missing == Some(true) {
        warnings.extend(workflows.missing(&checked).await?);
    }
    if warnings.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let warnings = warnings.iter().map(FaultView::from).collect();
    Ok(Reply(Data { data: WarningsView { warnings } }).into_response())
}
