//! Steps that wait: gates, verdicts, a generic signal, and ending stuck steps.

use super::runs::after;
use super::{Answer, Problems};
use crate::app::App;
use crate::auth::Auth;
use crate::body::{Json, Params, Raw};
use crate::error::Problem;
use crate::view::*;
use axum::Json as Reply;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::Value;
use stepwell_core::event::Verdict;
use stepwell_engine::commands::{Decision, Override};
use stepwell_engine::{Caller, Error};
use stepwell_store::RunId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(approvals))
        .routes(routes!(approval))
        .routes(routes!(approve))
        .routes(routes!(deny))
        .routes(routes!(settle))
        .routes(routes!(deliver))
        .routes(routes!(finish))
        .routes(routes!(ready))
        .routes(routes!(approve_by_id))
        .routes(routes!(deny_by_id))
}

/// Open gates of the organisation, oldest first
#[utoipa::path(get, path = "/api/v1/approvals", operation_id = "listApprovals",
    tag = "approvals", params(Paging), responses(
    (status = 200, description = "A page of open gates", body = Page<ApprovalView>), Problems))]
async fn approvals(
    State(app): State<App>,
    Auth(caller): Auth,
    Params(paging): Params<Paging>,
) -> Answer<Reply<Page<ApprovalView>>> {
    let bad = || Problem::input("cursor", "this is not the `next` of an earlier page");
    let after = match &paging.cursor {
        Some(cursor) => {
            let (run, path) = cursor.split_once('.').ok_or_else(bad)?;
            Some((RunId(run.parse().map_err(|_| bad())?), path.to_string()))
        }
        None => None,
    };
    let (open, next) = app.engine.gates(&caller).list(after, paging.limit()?).await?;
    let next = next.map(|(run, path)| format!("{}.{path}", run.0));
    Ok(Reply(Page { data: open.into_iter().map(ApprovalView::from).collect(), next }))
}

/// The open gate of a step, with the digest for the answer
#[utoipa::path(get, path = "/api/v1/runs/{run}/steps/{step}/approval", operation_id = "getApproval", tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The step's name or path")),
    responses((status = 200, description = "The gate", body = Data<ApprovalView>), Problems))]
async fn approval(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Reply<Data<ApprovalView>>> {
    match app.engine.gates(&caller).get(&run, &step).await {
        Ok(approval) => Ok(Reply(Data { data: approval.into() })),
        Err(error @ Error::Conflict(_)) => {
            let now = app.engine.runs(&caller).get_after_change(&run).await?.status;
            Err(Problem::from(error).now(now))
        }
        Err(error) => Err(error.into()),
    }
}

#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct AnswerRequest {
    comment: Option<String>,
    /// The data for the gate's form.
    #[schema(value_type = serde_json::Value)]
    data: Option<Value>,
    /// The whole input of a held call, changed: it runs instead. Only to approve, where the policy allows changes.
    #[schema(value_type = serde_json::Value)]
    input: Option<Value>,
    /// Digest of what was shown by `GET …/approval`. Required if the gate was asked before, or if a call is held.
    digest: Option<String>,
}

/// Approve at a gate
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/approve", operation_id = "approveStep", tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The gate's name or path")),
    request_body(content = Option<AnswerRequest>),
    responses((status = 200, description = "Approved", body = Data<Run>), Problems))]
async fn approve(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    Json(answer, ..): Json<AnswerRequest>,
) -> Answer<Reply<Data<Run>>> {
    decide(&app, &caller, (&run, &step), true, answer).await
}

/// Deny at a gate
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/deny", operation_id = "denyStep", tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The gate's name or path")),
    request_body(content = Option<AnswerRequest>),
    responses((status = 200, description = "Denied", body = Data<Run>), Problems))]
async fn deny(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    Json(answer, ..): Json<AnswerRequest>,
) -> Answer<Reply<Data<Run>>> {
    decide(&app, &caller, (&run, &step), false, answer).await
}

/// Approve at a gate, by its step id
#[utoipa::path(post, path = "/api/v1/steps/{step}/approve", operation_id = "approveStepById", tag = "approvals",
    params(("step" = String, Path, description = "The step's id")),
    request_body(content = Option<AnswerRequest>),
    responses((status = 200, description = "Approved", body = Data<Run>), Problems))]
async fn approve_by_id(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(step): Path<String>,
    Json(answer, ..): Json<AnswerRequest>,
) -> Answer<Reply<Data<Run>>> {
    let (run, path) = named(&step)?;
    decide(&app, &caller, (&run, &path), true, answer).await
}

/// Deny at a gate, by its step id
#[utoipa::path(post, path = "/api/v1/steps/{step}/deny", operation_id = "denyStepById", tag = "approvals",
    params(("step" = String, Path, description = "The step's id")),
    request_body(content = Option<AnswerRequest>),
    responses((status = 200, description = "Denied", body = Data<Run>), Problems))]
async fn deny_by_id(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(step): Path<String>,
    Json(answer, ..): Json<AnswerRequest>,
) -> Answer<Reply<Data<Run>>> {
    let (run, path) = named(&step)?;
    decide(&app, &caller, (&run, &path), false, answer).await
}

async fn decide(
    app: &App,
    caller: &Caller,
    (run, step): (&str, &str),
    approve: bool,
    answer: AnswerRequest,
) -> Answer<Reply<Data<Run>>> {
    let AnswerRequest { comment, data, input, digest } = answer;
    let decision = Decision { approve, comment, data, digest, input };
    let done = app.engine.gates(caller).answer(run, step, decision).await;
    after(app, caller, run, done).await
}

fn named(step: &str) -> Result<(String, String), Problem> {
    step_named(step).ok_or_else(|| Problem::not_found(format!("there is no step {step:?}")))
}

/// A person's verdict on a call that may have happened and must not be repeated.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VerdictRequest {
    verdict: VerdictName,
    /// The result of the call, if it happened.
    #[serde(default)]
    #[schema(value_type = serde_json::Value)]
    output: Value,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum VerdictName {
    Happened,
    RunAgain,
    Fail,
}

/// Report what happened to a call whose outcome is unknown
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/verdict", operation_id = "settleStep", tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The step's name or path")),
    request_body = VerdictRequest, responses((status = 200, description = "Recorded", body = Data<Run>), Problems))]
async fn settle(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    Json(request, ..): Json<VerdictRequest>,
) -> Answer<Reply<Data<Run>>> {
    let verdict = match request.verdict {
        VerdictName::Happened => Verdict::Happened { body: request.output },
        VerdictName::RunAgain => Verdict::RunAgain,
        VerdictName::Fail => Verdict::Fail,
    };
    let done = app.engine.steps(&caller).settle(&run, &step, verdict).await;
    after(&app, &caller, &run, done).await
}

/// Deliver the call that a step waits for, by the step's name
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/deliver", operation_id = "deliverToStep",
    tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The step's name or path")),
    request_body(content = Option<serde_json::Value>, description = "The content of the call"),
    responses((status = 200, description = "Delivered", body = Data<Run>), Problems))]
async fn deliver(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    raw: Raw,
) -> Answer<Reply<Data<Run>>> {
    let body = raw.value(&app).await?;
    let done = app.engine.steps(&caller).deliver_to(&run, &step, body).await;
    after(&app, &caller, &run, done).await
}

/// The result of a stuck step: an output or an error.
#[derive(Clone, Default, Debug, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct FinishRequest {
    #[schema(value_type = Option<FinishStatus>)]
    status: Option<String>,
    #[schema(value_type = serde_json::Value)]
    output: Option<Value>,
    error: Option<String>,
    /// The reason, for the log.
    comment: Option<String>,
}

/// End a stuck step with a given result; for administrators, and logged
#[utoipa::path(post, path = "/api/v1/runs/{run}/steps/{step}/finish", operation_id = "finishStep", tag = "approvals",
    params(("run" = String, Path, description = "The run's id"),
        ("step" = String, Path, description = "The step's name or path")),
    request_body(content = Option<FinishRequest>),
    responses((status = 200, description = "Ended", body = Data<Run>), Problems))]
async fn finish(
    State(app): State<App>,
    Auth(caller): Auth,
    Path((run, step)): Path<(String, String)>,
    Json(request, ..): Json<FinishRequest>,
) -> Answer<Reply<Data<Run>>> {
    let outcome = match (request.status.as_deref(), request.error) {
        (None | Some("success"), None) => Ok(request.output.unwrap_or_default()),
        (None | Some("failed"), error) if request.output.is_none() => {
            Err(error.unwrap_or_else(|| format!("ended by {}", caller.name)))
        }
        (Some("success" | "failed") | None, _) => {
            return Err(Problem::input(
                "status",
                "a success takes an output and no error, a failure takes an error and no output",
            ));
        }
        (Some(other), _) => return Err(Problem::input("status", format!("{other:?} is not success or failed"))),
    };
    let done =
        app.engine.steps(&caller).override_step(&run, &step, Override { outcome, comment: request.comment }).await;
    after(&app, &caller, &run, done).await
}

/// Signal a waiting step: approves a gate, ends a sleep, or delivers an empty call
#[utoipa::path(post, path = "/api/v1/steps/{step}/ready", operation_id = "signalStep", tag = "approvals",
    params(("step" = String, Path, description = "The step's id")),
    responses((status = 200, description = "The step continues", body = Data<Run>), Problems))]
async fn ready(State(app): State<App>, Auth(caller): Auth, Path(step): Path<String>) -> Answer<Reply<Data<Run>>> {
    let (run, path) = named(&step)?;
    let done = app.engine.steps(&caller).ready(&run, &path).await;
    after(&app, &caller, &run, done).await
}
