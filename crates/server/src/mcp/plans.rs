//! What will happen: dry runs of definitions, and schedules.

use super::call::Call;
use super::text;
use crate::body::shallow;
use crate::error::Problem;
use crate::view::ScheduleSummary;
use rmcp::model::CallToolResult;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use stepwell_core::simulate::script::{Script, Series};
use stepwell_engine::commands::{Rehearsed, Simulation, Source};

/// Steps that a text lists.
const LISTED: usize = 100;

#[derive(Deserialize)]
pub struct Simulate {
    workflow: Option<String>,
    definition: Option<Value>,
    input: Option<Value>,
    #[serde(default)]
    calls: Map<String, Value>,
    #[serde(default)]
    answers: Map<String, Value>,
}

#[derive(Deserialize)]
pub struct Schedule {
    workflow: String,
    cron: Option<String>,
    timezone: Option<String>,
    input: Option<Value>,
    remove: Option<String>,
}

impl Call<'_> {
    /// Plays a definition on virtual time.
    pub async fn simulate(self, asked: Simulate) -> Result<CallToolResult, Problem> {
        let workflows = self.app.engine.workflows(self.caller);
        let input = asked.input.unwrap_or_else(|| json!({}));
        for value in asked.calls.values().chain(asked.answers.values()).chain([&input]) {
            shallow(value, self.app)?;
        }
        let script = Script { input, calls: series("calls", asked.calls)?, answers: series("answers", asked.answers)? };
        let written = asked.definition.map(|definition| match definition {
            Value::String(text) => text,
            object => object.to_string(),
        });
        let simulation = match (&asked.workflow, &written) {
            (Some(name), None) => workflows.simulate(Rehearsed::Stored(name), script).await?,
            (None, Some(text)) => {
                self.caller.check(stepwell_engine::commands::Right::Define)?;
                workflows.simulate(Rehearsed::Written(Source { text, file: None }), script).await?
            }
            _ => return Err(Problem::input("workflow", "pass workflow or definition, one of them")),
        };
        Ok(text::result(structured(&simulation), words(&simulation)))
    }

    /// Adds or removes a schedule, or lists those of a workflow.
    pub async fn schedule(self, asked: Schedule) -> Result<CallToolResult, Problem> {
        let workflows = self.app.engine.workflows(self.caller);
        let (found, text) = match (asked.cron, asked.remove) {
            (Some(_), Some(_)) => return Err(Problem::input("remove", "pass cron or remove, not both")),
            (None, Some(id)) => {
                // An id of another workflow is not removed by mistake.
                let known = workflows.schedule(&asked.workflow).await?;
                if !known.iter().any(|schedule| schedule.id == id) {
                    return Err(Problem::not_found(format!("{:?} has no schedule {id:?}", asked.workflow)));
                }
                workflows.remove_schedule(&id).await?;
                (workflows.schedule(&asked.workflow).await?, format!("The schedule {id} is removed."))
            }
            (Some(cron), None) => {
                let mut written = json!({"cron": cron});
                for (name, value) in [("timezone", asked.timezone.map(Value::from)), ("input", asked.input)] {
                    if let Some(value) = value {
                        shallow(&value, self.app)?;
                        written[name] = value;
                    }
                }
                let added = workflows.add_schedule(&asked.workflow, &written).await?;
                let id = added.id.clone();
                let all = workflows.schedule(&asked.workflow).await?;
                // What is read back says whether it will fire.
                let next = all.iter().find(|one| one.id == id).and_then(|one| one.next.first().copied());
                let when = match next {
                    Some(next) => format!("It fires next at {next}, with the rights of this key."),
                    None => "It does not fire: the workflow is disabled, or no person has accepted its version \
                             (workflow_reviews)."
                        .to_string(),
                };
                (all, format!("The schedule {id} is added. {when} Remove it with remove: {id:?}."))
            }
            (None, None) => (workflows.schedule(&asked.workflow).await?, String::new()),
        };
        let found: Vec<ScheduleSummary> = found.into_iter().map(ScheduleSummary::from).collect();
        let mut lines = text;
        for schedule in &found {
            let cron = schedule.cron.as_deref().unwrap_or("once");
            let next = schedule.next.first().map_or("does not fire".to_string(), |next| format!("next {}", next.0));
            let _ =
                write!(lines, "\n- {} {cron} {}: {next}", schedule.id, schedule.timezone.as_deref().unwrap_or("UTC"));
        }
        if found.is_empty() {
            lines += "\nThe workflow has no schedules.";
        }
        Ok(text::result(json!({"schedules": found, "next": null}), lines.trim_start().to_string()))
    }
}

/// Results or answers by step, with the place of one that cannot be read.
fn series<T: DeserializeOwned>(field: &str, given: Map<String, Value>) -> Result<BTreeMap<String, Series<T>>, Problem> {
    let read = |(step, value): (String, Value)| match serde_json::from_value::<Series<T>>(value) {
        Ok(series) => Ok((step, series)),
        Err(error) => Err(Problem::input(&format!("{field}.{step}"), error.to_string())),
    };
    given.into_iter().map(read).collect()
}

fn structured(simulation: &Simulation) -> Value {
    let played = &simulation.played;
    let error = played.error.as_ref().map(|error| json!({"code": error.code, "message": error.message}));
    json!({
        "workflow": simulation.workflow,
        "version": simulation.version,
        "status": if played.stuck.is_some() { "unfinished" } else { played.status },
        "output": played.output,
        "error": error,
        "took_ms": played.took.0,
        "path": played.path,
        "steps": played.steps,
        "calls": simulation.calls().collect::<BTreeMap<_, _>>(),
        "made_up": played.made_up,
        "policies": simulation.policies,
        "stuck": played.stuck,
    })
}

fn words(simulation: &Simulation) -> String {
    let played = &simulation.played;
    let mut text = format!("Simulated {:?}: nothing was called. ", simulation.workflow);
    let _ = match &played.stuck {
        Some(stuck) => write!(text, "It did not end: {stuck}."),
        None => write!(text, "It ends as {} after {}.", played.status, played.took),
    };
    if let Some(error) = &played.error {
        let _ = write!(text, "\nError: {} [{}]", error.message, error.code);
    }
    let list: Vec<&str> = played.path.iter().take(LISTED).map(String::as_str).collect();
    let more = if played.path.len() > LISTED { ", …" } else { "" };
    let _ = write!(text, "\nSteps in order: {}{more}", list.join(", "));
    if !played.made_up.is_empty() {
        let names: Vec<&str> = played.made_up.keys().take(LISTED).map(String::as_str).collect();
        let _ = write!(
            text,
            "\nMade-up results: {}. Give real ones as calls, such as {{\"{}\": {{\"body\": {{…}}}}}}, or \
             {{\"error\": \"…\"}} to try a failure.",
            names.join(", "),
            names[0],
        );
    }
    simulation.policies.iter().for_each(|policy| {
        let _ = write!(text, "\nPolicy: {policy}");
    });
    text
}
