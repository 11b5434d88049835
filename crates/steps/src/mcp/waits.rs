//! Calls that do not end at once: questions of a server, which people answer, and tasks, which are looked at from time to
//! time. Between two rounds nothing is held but a note.

use super::call::{Calling, Stop, Trouble};
use super::connect::short;
use super::upstream::Link;
use rmcp::model::{
    ClientRequest, ErrorCode, GetTaskParams, GetTaskRequest, InputResponses, UpdateTaskParams, UpdateTaskRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use stepwell_core::event::{Failure, Outcome};
use stepwell_engine::{Suspended, Until};

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Where a server does not say when to look again, or is away.
const USUAL: Duration = Duration::from_secs(5);
/// How often a server may put a call off.
const MOST_ROUNDS: u32 = 100;

/// What the next attempt goes on with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    server: String,
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// What the server wants to know, by its keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Map<String, Value>>,
    /// What somebody has said to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    /// Of a task: keys that were answered. It may take a moment until the server shows it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    told: BTreeSet<String>,
    /// The server's own note: to be given back as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default)]
    rounds: u32,
}

/// What an attempt with a note does.
pub enum Round {
    Call(Note),
    Task(Note),
}

impl Note {
    pub fn new(calling: &Calling<'_>) -> Note {
        Note {
            server: calling.upstream.name().into(),
            tool: calling.known.offered.tool.clone(),
            task: None,
            asked: None,
            answer: None,
            told: BTreeSet::new(),
            state: None,
            rounds: 0,
        }
    }

    pub fn read(note: &Value) -> Option<Note> {
        Note::deserialize(note).ok()
    }

    /// With what people have said since.
    pub fn go_on(mut self, calling: &Calling<'_>) -> Result<Round, Stop> {
        if self.server != calling.upstream.name() || self.tool != calling.known.offered.tool {
            let what = format!(
                "it began as `{}` of the server {}, and that name means another one now",
                self.tool, self.server
            );
            return Err(Failure { may_have_happened: true, ..Failure::new("task_gone", what) }.into());
        }
        if self.answer.is_none() {
            let answers = calling.call.resumed.as_ref().map(|resumed| resumed.answers.as_slice()).unwrap_or_default();
            self.answer = self.asked.as_ref().and_then(|_| answers.last().cloned());
        }
        if self.asked.is_some() && self.answer.is_none() {
            return Err(self.ask(calling));
        }
        Ok(if self.task.is_some() { Round::Task(self) } else { Round::Call(self) })
    }

    /// What the server is told.
    pub fn responses(&self) -> Option<InputResponses> {
        let (asked, answer) = (self.asked.as_ref()?, self.answer.as_ref()?);
        let accept = |content: &Value| {
            let content = if content.is_null() { json!({}) } else { content.clone() };
            json!({"action": "accept", "content": content})
        };
        let several = asked.len() > 1;
        let said = |key: &String| if several { answer.get(key).unwrap_or(&Value::Null) } else { answer };
        Some(asked.keys().map(|key| (key.clone(), accept(said(key)))).collect())
    }

    /// A result that is a question, or puts the call off.
    pub fn asks(mut self, calling: &Calling<'_>, link: &Link, answer: &Value) -> Stop {
        self.rounds += 1;
        if self.rounds > MOST_ROUNDS {
            let message = format!("{} put the call off more than {MOST_ROUNDS} times", self.server);
            return Failure { may_have_happened: true, ..Failure::new("too_many_rounds", message) }.into();
        }
        self.answer = None;
        self.state = answer.get("requestState").and_then(Value::as_str).map(str::to_owned);
        self.asked = answer.get("inputRequests").and_then(Value::as_object).filter(|asked| !asked.is_empty()).cloned();
        if self.asked.is_none() {
            let pause = SHORTEST * self.rounds;
            return Stop::Suspended(hidden(link, self.later(Some(pause))).into());
        }
        self.hidden(link).ask(calling)
    }

    /// A result that is a task.
    pub fn begins(self, calling: &Calling<'_>, link: &Link, answer: &Value) -> Stop {
        let Some(task) = answer.get("taskId").and_then(Value::as_str) else {
            let message = format!("`{}` gave back a task without an id", calling.known.offered.name);
            return Failure { may_have_happened: true, ..Failure::new("bad_result", message) }.into();
        };
        let note = Note { task: Some(task.into()), asked: None, answer: None, state: None, ..self };
        Stop::Suspended(hidden(link, note.later(pause(answer))).into())
    }

    pub fn later(self, pause: Option<Duration>) -> Suspended {
        let pause = pause.unwrap_or(USUAL).clamp(SHORTEST, LONGEST);
        Suspended { note: self.into_value(), until: Until::Later(pause) }
    }

    fn into_value(self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn hidden(mut self, link: &Link) -> Note {
        let mut note = self.asked.take().map(Value::Object).unwrap_or_default();
        link.mask.value(&mut note);
        if let Value::Object(asked) = note {
            self.asked = Some(asked);
        }
        self
    }

    fn ask(self, calling: &Calling<'_>) -> Stop {
        match question(self.asked.as_ref(), &self.server, &calling.known.offered.name) {
            Ok(ask) => {
                let until = Until::Answered { ask, timeout: None };
                Stop::Suspended(Suspended { note: self.into_value(), until }.into())
            }
            Err(why) => {
                let message = format!("{} {why}", self.server);
                Failure { may_have_happened: true, ..Failure::new("unsupported_request", message) }.into()
            }
        }
    }
}

fn hidden(link: &Link, mut waits: Suspended) -> Suspended {
    link.mask.value(&mut waits.note);
    waits
}

fn pause(task: &Value) -> Option<Duration> {
    task.get("pollIntervalMs").and_then(Value::as_u64).map(Duration::from_millis)
}

/// What people are shown: one form, or one with a part for each key.
fn question(asked: Option<&Map<String, Value>>, server: &str, tool: &str) -> Result<Value, String> {
    let parts = asked.into_iter().flatten().map(|(key, request)| Ok((key, part(request)?)));
    let parts = parts.collect::<Result<Vec<_>, String>>()?;
    let (message, form) = match parts.as_slice() {
        [(_, (message, form))] => (message.clone(), form.clone()),
        several => {
            let messages: Vec<String> = several.iter().map(|(key, (message, _))| format!("{key}: {message}")).collect();
            let field = |(key, (message, form)): &(&String, (String, Value))| {
                let mut form = form.clone();
                if let Some(fields) = form.as_object_mut() {
                    fields.entry("description").or_insert_with(|| message.as_str().into());
                }
                ((*key).clone(), form)
            };
            let fields: Map<String, Value> = several.iter().map(field).collect();
            let keys: Vec<&String> = several.iter().map(|(key, _)| *key).collect();
            (messages.join("\n"), json!({"type": "object", "properties": fields, "required": keys}))
        }
    };
    if jsonschema::validator_for(&form).is_err() {
        return Err("asks for input by a form that cannot be read".into());
    }
    Ok(json!({"message": message, "form": form, "server": server, "tool": tool}))
}

fn part(request: &Value) -> Result<(String, Value), String> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or("nothing that is known");
    let params = request.get("params").unwrap_or(&Value::Null);
    let mode = params.get("mode").and_then(Value::as_str).unwrap_or("form");
    if method != "elicitation/create" || mode != "form" {
        let mode = if method == "elicitation/create" { format!(" ({})", short(mode)) } else { String::new() };
        return Err(format!("asks for {}{mode}, and only questions with a form can be answered here", short(method)));
    }
    let message = params.get("message").and_then(Value::as_str).unwrap_or("A tool asks for input.").to_owned();
    let form = params.get("requestedSchema").cloned().unwrap_or_else(|| json!({"type": "object"}));
    Ok((message, form))
}

/// Tells a task what was answered, or looks how it is.
pub async fn poll(calling: &Calling<'_>, mut note: Note) -> Result<Outcome, Stop> {
    let link = calling.upstream.link().await.map_err(Stop::Away)?;
    let task = note.task.clone().unwrap_or_default();
    if let Some(responses) = note.responses() {
        let params = UpdateTaskParams::new(task, responses);
        let (said, _) = calling.send(&link, ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params))).await;
        return match said {
            Ok(_) => {
                note.told.extend(note.asked.take().into_iter().flatten().map(|(key, _)| key));
                note.answer = None;
                Err(Stop::Suspended(note.later(Some(SHORTEST)).into()))
            }
            Err(Trouble::Unsent(_) | Trouble::Lost(_)) => Err(Stop::Suspended(note.later(None).into())),
            Err(Trouble::Said { code, message }) => Err(gone(&link, code, &message).into()),
        };
    }
    let params = GetTaskParams::new(task);
    let (said, log) = calling.send(&link, ClientRequest::GetTaskRequest(GetTaskRequest::new(params))).await;
    let mut state = match said {
        Ok(state) => state,
        // That nobody answers says nothing about the task.
        Err(Trouble::Unsent(_) | Trouble::Lost(_)) => return Err(Stop::Suspended(note.later(None).into())),
        Err(Trouble::Said { code, message }) => return Err(gone(&link, code, &message).into()),
    };
    let said = |what: &str| {
        let words = state.get("statusMessage").and_then(Value::as_str).map(|words| format!(": {words}"));
        short(&link.mask.shown(&format!("the task {what}{}", words.unwrap_or_default())))
    };
    match state.get("status").and_then(Value::as_str) {
        Some("completed") => {
            let result = state.get_mut("result").map(Value::take).unwrap_or_default();
            Ok(calling.ended(&link, result, log))
        }
        Some("failed") => {
            let error = state.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
            let message = error.map_or_else(|| said("failed"), |error| short(&link.mask.shown(error)));
            Err(Failure { may_have_happened: true, ..Failure::new("task_failed", message) }.into())
        }
        Some("cancelled") => {
            let failure = Failure::new("task_cancelled", said("was cancelled by its server"));
            Err(Failure { may_have_happened: true, ..failure }.into())
        }
        Some("input_required") => {
            let asked = state.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
            let open: Map<String, Value> = asked.into_iter().filter(|(key, _)| !note.told.contains(key)).collect();
            if open.is_empty() {
                return Err(Stop::Suspended(note.later(pause(&state)).into()));
            }
            note.asked = Some(open);
            Err(note.hidden(&link).ask(calling))
        }
        _ => Err(Stop::Suspended(note.later(pause(&state)).into())),
    }
}

/// A server that started anew knows nothing of its tasks.
fn gone(link: &Link, code: i32, message: &str) -> Failure {
    let unknown = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::RESOURCE_NOT_FOUND];
    let (code, what) = if unknown.contains(&ErrorCode(code)) {
        ("task_gone", "the server does not know the task any more")
    } else {
        ("task_failed", "the server cannot say how the task is")
    };
    let message = link.mask.shown(&format!("{what}: {message}")).into_owned();
    Failure { may_have_happened: true, ..Failure::new(code, message) }
}
