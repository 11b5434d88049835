//! Runs as tasks: a task's id is the run's, so what there is to know of it is on disk before the client knows the id, and
//! every node can say how it stands.
//!
//! A run that failed is a task that completed with an error as its result: the call was carried out, to a bad end.

use super::runs::{RunState, read};
use super::{Client, gates, proxied, text};
use crate::app::App;
use crate::error::Problem;
use rmcp::model::*;
use serde_json::Value;
use stepwell_core::event::Ignored;
use stepwell_engine::commands::Refusal;
use stepwell_engine::{Caller, Error};

/// How often a client should ask: of work, and of what a person has to answer.
const SOON: u64 = 1_000;
const LATER: u64 = 5_000;
/// Answers that one request brings.
const MOST: usize = 50;

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

/// How the run stands; and the last answer of the caller that was not taken, if what it was about is still open.
async fn waiting(app: &App, caller: &Caller, state: &RunState) -> Result<String, Problem> {
    let said = text::run(&state.run, &state.approvals, false);
    let open = |refusal: &Refusal| state.approvals.iter().any(|gate| gate.step == gates::path(&refusal.step));
    let refusal = app.engine.gates(caller).last_refusal(&state.run.id).await?.filter(open);
    Ok(match refusal {
        Some(Refusal { step, reason }) => {
            format!("The answer to {:?} was not taken: {reason}\n{said}", gates::path(&step))
        }
        None => said,
    })
}

fn task(state: &RunState, status: TaskStatus) -> Task {
    let run = &state.run;
    let steps = run.tasks.0.iter().flat_map(|(_, step)| [step.started_at, step.finished_at]);
    let waits = run.waiting_for.iter().map(|wait| wait.since);
    let times = steps.chain(waits).chain([Some(run.created_at), run.started_at, run.finished_at]);
    let updated = times.flatten().max().unwrap_or(run.created_at);
    let mut task = Task::new(&run.id, status, run.created_at.0.to_string(), updated.0.to_string());
    task.status_message = Some(text::run(run, &[], false));
    task.poll_interval_ms = Some(SOON);
    task
}

fn fields(result: &CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    }
}

/// Takes answers to gates. One that cannot be taken is written down and told by the next look at the task.
pub async fn update(app: &App, caller: &Caller, run: &str, answers: InputResponses) -> Result<(), Problem> {
    let state = read(app, caller, run).await?;
    for (key, response) in answers.into_iter().take(MOST) {
        if let Err(reason) = answer(app, caller, &state, (&key, &response)).await {
            app.engine.gates(caller).note_refusal(run, Refusal { step: key, reason }).await?;
        }
    }
    Ok(())
}

async fn answer(app: &App, caller: &Caller, state: &RunState, (key, response): (&str, &Value)) -> Result<(), String> {
    let of_key = state.approvals.iter().find(|gate| gates::key(gate) == key);
    let Some(gate) = of_key else {
        return Err("what it was about is no longer asked, or was asked otherwise".into());
    };
    if !gate.mine {
        return Err("this key may not answer it".into());
    }
    let Some(decision) = gates::decision(gate, response)? else { return Ok(()) };
    let done = app.engine.gates(caller).answer(&gate.run_id, &gate.step, decision).await;
    done.map_err(|error| text::problem(&Problem::from(error)))
}

/// Asks the run to stop. One that has ended stays as it is.
pub async fn cancel(app: &App, caller: &Caller, run: &str) -> Result<(), Problem> {
    match app.engine.runs(caller).cancel(run, Some("cancelled by its client")).await {
        Ok(()) | Err(Error::Conflict(Ignored::RunFinished)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
