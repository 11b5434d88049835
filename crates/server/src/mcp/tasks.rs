//! Runs as tasks: the id of a task is the id of its run, so its state is on disk before the client knows the id, and
//! every node can report it.
//!
//! A failed run is a completed task whose result is an error: the call was carried out and failed.

use super::runs::{RunState, read};
use super::{Client, gates, proxied, text};
use crate::app::App;
use crate::body::within;
use crate::error::Problem;
use crate::view::ApprovalView;
use axum::http::StatusCode;
use rmcp::model::*;
use serde_json::Value;
use stepwell_core::event::Ignored;
use stepwell_engine::commands::Refusal;
use stepwell_engine::{Caller, Error};

/// Poll intervals for clients: while steps run, and while a person has to answer.
const SOON: u64 = 1_000;
const LATER: u64 = 5_000;
/// Maximum number of answers in one request.
const MOST: usize = 50;
/// Maximum length of an unknown question's name in an error.
const MOST_SHOWN: usize = 100;

/// The task of a run that was just started.
pub async fn begun(app: &App, caller: &Caller, run: &str) -> Result<CreateTaskResult, Problem> {
    let state = read(app, caller, run).await?;
    Ok(CreateTaskResult::new(task(&state, TaskStatus::Working)))
}

pub async fn get(app: &App, caller: &Caller, run: &str, client: Client) -> Result<GetTaskResult, Problem> {
    let state = read(app, caller, run).await?;
    let mut task = task(&state, TaskStatus::Working);
    let payload = match state.run.status.as_str() {
        "completed" | "failed" | "timeout" if proxied::is_call(&state) => {
            TaskPayload::Completed { result: fields(&proxied::result(&state)) }
        }
        "completed" | "failed" | "timeout" => TaskPayload::Completed { result: fields(&state.outcome()) },
        "cancelled" => TaskPayload::Cancelled,
        _ => {
            let asked = state.approvals.iter().filter(|gate| gate.mine && client.elicits);
            let input_requests: InputRequests =
                asked.filter_map(|gate| Some((gates::key(gate), gates::question(gate)?))).collect();
            task.status_message = Some(waiting(app, caller, &state).await?);
            match input_requests.is_empty() {
                true => TaskPayload::Working,
                false => TaskPayload::InputRequired { input_requests },
            }
        }
    };
    if state.run.waiting_for.iter().all(|wait| wait.what != "executor") && state.run.finished_at.is_none() {
        task.poll_interval_ms = Some(LATER);
    }
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// The state of the run, with the caller's last refused answer if its gate is still open.
async fn waiting(app: &App, caller: &Caller, state: &RunState) -> Result<String, Problem> {
    let text = state.text(false);
    let open = |refusal: &Refusal| state.approvals.iter().any(|gate| gate.step == gates::path(&refusal.step));
    let refusal = app.engine.gates(caller).last_refusal(&state.run.id).await?.filter(open);
    Ok(match refusal {
        Some(Refusal { step, reason }) => {
            format!("The answer to {:?} was refused: {reason}\n{text}", gates::path(&step))
        }
        None => text,
    })
}

fn task(state: &RunState, status: TaskStatus) -> Task {
    let run = &state.run;
    let steps = run.tasks.0.iter().flat_map(|(_, step)| [step.started_at, step.finished_at]);
    let waits = run.waiting_for.iter().map(|wait| wait.since);
    let times = steps.chain(waits).chain([Some(run.created_at), run.started_at, run.finished_at]);
    let updated = times.flatten().max().unwrap_or(run.created_at);
    let mut task = Task::new(&run.id, status, run.created_at.0.to_string(), updated.0.to_string());
    task.status_message = Some(text::run(run, &[], "", false));
    task.poll_interval_ms = Some(SOON);
    task
}

fn fields(result: &CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    }
}

/// Submits answers to gates. A refused answer is recorded and reported by the next read of the task. Only answers of
/// an approver to an open gate are recorded; others are refused at once.
pub async fn update(app: &App, caller: &Caller, run: &str, answers: InputResponses) -> Result<(), Problem> {
    if answers.len() > MOST {
        return Err(Problem::input("inputResponses", format!("at most {MOST} answers can be sent at a time")));
    }
    let state = read(app, caller, run).await?;
    let mut refused = None;
    for (key, response) in answers {
        let Some(gate) = state.approvals.iter().find(|gate| gate.step == gates::path(&key)) else {
            let name: String = key.chars().take(MOST_SHOWN).collect();
            refused = Some(Problem::input("inputResponses", format!("there is no open question {name:?}")));
            continue;
        };
        if !gate.mine {
            let detail = format!("this key is not allowed to answer {:?}", gate.step);
            refused = Some(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
            continue;
        }
        let done = match gates::key(gate) == key {
            true => answer(app, caller, gate, &response).await,
            false => Err("the question is no longer open, or has changed".to_string()),
        };
        if let Err(reason) = done {
            app.engine.gates(caller).note_refusal(run, Refusal { step: gates::key(gate), reason }).await?;
        }
    }
    refused.map_or(Ok(()), Err)
}

async fn answer(app: &App, caller: &Caller, gate: &ApprovalView, response: &Value) -> Result<(), String> {
    if let Some(text) = gates::json_text(response) {
        within(text.as_bytes(), app, 0).map_err(|problem| problem.detail)?;
    }
    if !gates::fits(gate) {
        return Err(text::elsewhere(gate));
    }
    let Some(decision) = gates::decision(gate, response)? else { return Ok(()) };
    let done = app.engine.gates(caller).answer(&gate.run_id, &gate.step, decision).await;
    done.map_err(|error| text::problem(&Problem::from(error)))
}

/// Cancels the run. A finished run is left as it is.
pub async fn cancel(app: &App, caller: &Caller, run: &str) -> Result<(), Problem> {
    match app.engine.runs(caller).cancel(run, Some("cancelled by its client")).await {
        Ok(()) | Err(Error::Conflict(Ignored::RunFinished)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
