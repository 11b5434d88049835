//! Calls that do not end with the first response: questions, which users answer, and tasks, which are polled. Between
//! two rounds only a note is kept.

use super::absent::millis;
use super::call::{CallEnd, RequestError, ToolCall, over_limit};
use super::connect::truncated;
use super::limits::{MAX_FIELDS, MAX_FORM, MAX_ROUNDS, MAX_STATE, MAX_TASK_ID};
use super::upstream::Link;
use rmcp::model::{
    ClientRequest, ErrorCode, GetTaskParams, GetTaskRequest, InputResponses, UpdateTaskParams, UpdateTaskRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stepwell_core::approval::digest;
use stepwell_core::event::{Failure, Outcome};
use stepwell_core::time::Time;
use stepwell_core::unseen::{escaped, has_unseen, rewrite};
use stepwell_engine::schema;
use stepwell_engine::{StepCall, Suspended, Until};

const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How often a task may report a question that was answered before it counts as asked again.
const MAX_REPEATS: u32 = 5;
/// Used if the server names no interval or is unavailable.
const DEFAULT_PAUSE: Duration = Duration::from_secs(5);

/// The state with which the next attempt continues. Stored with the run, so its JSON must stay readable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub server: String,
    pub tool: String,
    /// When the first request was sent. Notes of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The server's input requests, by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Map<String, Value>>,
    /// The user's answer to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    /// For a task: keys that were answered, as notes of earlier versions have them.
    #[serde(rename = "told", default, skip_serializing_if = "BTreeSet::is_empty")]
    answered: BTreeSet<String>,
    /// For a task: questions that were answered, as digests by key. The server may still report them for a moment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    given: BTreeMap<String, String>,
    /// How often it has reported only answered questions since.
    #[serde(default, skip_serializing_if = "zero")]
    repeats: u32,
    /// The server's opaque state, returned to it unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default)]
    rounds: u32,
}

/// The next request of a call.
pub enum NextRequest {
    Call(Note),
    Task(Note),
}

impl Note {
    pub fn new(tool_call: &ToolCall<'_>) -> Note {
        Note {
            server: tool_call.upstream.name().into(),
            tool: tool_call.known.offered.tool.clone(),
            began: Some(tool_call.began),
            task: None,
            asked: None,
            answer: None,
            answered: BTreeSet::new(),
            given: BTreeMap::new(),
            repeats: 0,
            state: None,
            rounds: 0,
        }
    }

    pub fn read(note: &Value) -> Option<Note> {
        Note::deserialize(note).ok()
    }

    /// Continues with the answers given since.
    pub async fn resume(mut self, tool_call: &ToolCall<'_>) -> Result<NextRequest, CallEnd> {
        if self.server != tool_call.upstream.name() || self.tool != tool_call.known.offered.tool {
            let what = format!(
                "the call began as `{}` of the server {}, but that name now refers to another tool",
                self.tool, self.server
            );
            return Err(Failure { may_have_happened: true, ..Failure::new("task_gone", what) }.into());
        }
        if self.answer.is_none() {
            let answers = tool_call.call.resumed.as_ref().map(|resumed| resumed.answers.as_slice()).unwrap_or_default();
            self.answer = self.asked.as_ref().and_then(|_| answers.last().cloned());
        }
        if self.asked.is_some() && self.answer.is_none() {
            return Err(self.ask(tool_call).await);
        }
        Ok(if self.task.is_some() { NextRequest::Task(self) } else { NextRequest::Call(self) })
    }

    /// The responses to the server's input requests.
    pub fn responses(&self) -> Option<InputResponses> {
        let (asked, answer) = (self.asked.as_ref()?, self.answer.as_ref()?);
        let accept = |content: &Value| {
            let content = if content.is_null() { json!({}) } else { content.clone() };
            json!({"action": "accept", "content": content})
        };
        let several = asked.len() > 1;
        let content = |key: &String| if several { answer.get(key).unwrap_or(&Value::Null) } else { answer };
        Some(asked.keys().map(|key| (key.clone(), accept(content(key)))).collect())
    }

    /// Refuses to answer the server's open input requests.
    pub fn refusal(&self, action: &str) -> Option<InputResponses> {
        let asked = self.asked.as_ref().filter(|asked| !asked.is_empty())?;
        Some(asked.keys().map(|key| (key.clone(), json!({"action": action}))).collect())
    }

    /// Whether the call has taken longer than its author gave to it.
    pub fn is_late(&self, call: &StepCall, now: Time) -> bool {
        let (Some(began), Some(bound)) = (self.began, call.bound) else { return false };
        now.since(began) >= millis(bound)
    }

    /// Of a task's open questions, those to ask. A question that was answered and is still reported was answered just
    /// now, unless it is another one under the same key, or is reported again and again.
    fn open(&mut self, asked: Map<String, Value>) -> Map<String, Value> {
        self.given.retain(|key, _| asked.contains_key(key));
        self.answered.retain(|key| asked.contains_key(key));
        self.repeats += 1;
        let again = self.repeats > MAX_REPEATS;
        let is_answered = |key: &String, request: &Value| {
            self.answered.contains(key) || self.given.get(key).is_some_and(|given| *given == digest(request))
        };
        let open: Map<String, Value> =
            asked.into_iter().filter(|(key, request)| again || !is_answered(key, request)).collect();
        if !open.is_empty() {
            self.repeats = 0;
        }
        open
    }

    /// The task works, so what was answered is taken: the same key later is another question.
    fn forget_answers(&mut self) {
        self.answered.clear();
        self.given.clear();
        self.repeats = 0;
    }

    /// Handles a result that asks for input or postpones the call.
    pub async fn postpone(mut self, tool_call: &ToolCall<'_>, link: &Link, answer: &Value) -> CallEnd {
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            let message = format!("{} postponed the call more than {MAX_ROUNDS} times", self.server);
            return Failure { may_have_happened: true, ..Failure::new("too_many_rounds", message) }.into();
        }
        let state = answer.get("requestState").and_then(Value::as_str).map_or(0, str::len);
        if state > MAX_STATE {
            return disconnect(&self.server, link, &format!("it left a state of more than {} KB", MAX_STATE >> 10));
        }
        if let Some(why) = answer.get("inputRequests").and_then(too_large) {
            return disconnect(&self.server, link, &why);
        }
        self.answer = None;
        self.state = answer.get("requestState").and_then(Value::as_str).map(str::to_owned);
        self.asked = answer.get("inputRequests").and_then(Value::as_object).filter(|asked| !asked.is_empty()).cloned();
        if self.asked.is_none() {
            let pause = MIN_PAUSE * self.rounds;
            return CallEnd::Waiting(masked(link, self.later(Some(pause), None)).into());
        }
        self.masked(link).ask(tool_call).await
    }

    /// Handles a result that starts a task.
    pub fn start_task(self, tool_call: &ToolCall<'_>, link: &Link, answer: &Value) -> CallEnd {
        let Some(task) = answer.get("taskId").and_then(Value::as_str) else {
            let message = format!("`{}` returned a task without an id", tool_call.known.offered.name);
            return Failure { may_have_happened: true, ..Failure::new("bad_result", message) }.into();
        };
        if task.len() > MAX_TASK_ID {
            let why = format!("it started a task with an id of more than {MAX_TASK_ID} bytes");
            return disconnect(&self.server, link, &why);
        }
        let note = Note { task: Some(task.into()), asked: None, answer: None, state: None, ..self };
        CallEnd::Waiting(masked(link, note.later(pause(answer), status(answer))).into())
    }

    pub fn later(self, pause: Option<Duration>, status: Option<String>) -> Suspended {
        let pause = pause.unwrap_or(DEFAULT_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE);
        Suspended { note: self.into_value(), until: Until::Later { pause, status } }
    }

    fn into_value(self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn masked(mut self, link: &Link) -> Note {
        let mut note = self.asked.take().map(Value::Object).unwrap_or_default();
        link.mask.value(&mut note);
        if let Value::Object(asked) = note {
            self.asked = Some(asked);
        }
        self
    }

    async fn ask(self, tool_call: &ToolCall<'_>) -> CallEnd {
        match question(self.asked.as_ref(), &self.server, &tool_call.known.offered.name).await {
            Ok(ask) => {
                let until = Until::Answered { ask, timeout: None };
                CallEnd::Waiting(Suspended { note: self.into_value(), until }.into())
            }
            Err(why) => {
                let message = format!("{} {why}", self.server);
                Failure { may_have_happened: true, ..Failure::new("unsupported_request", message) }.into()
            }
        }
    }
}

/// Ends a connection whose server exceeded a limit.
fn disconnect(server: &str, link: &Link, why: &str) -> CallEnd {
    link.verdict.end(why);
    over_limit(server, why).into()
}

/// Why input requests are more than users can be asked, if they are.
fn too_large(asked: &Value) -> Option<String> {
    if asked.to_string().len() > MAX_FORM {
        return Some(format!("it asked with a form of more than {} KB", MAX_FORM >> 10));
    }
    let fields = |request: &Value| {
        request.pointer("/params/requestedSchema/properties").and_then(Value::as_object).map_or(0, Map::len)
    };
    let count: usize = asked.as_object().into_iter().flatten().map(|(_, request)| 1 + fields(request)).sum();
    (count > MAX_FIELDS).then(|| format!("it asked with a form of more than {MAX_FIELDS} fields"))
}

fn masked(link: &Link, mut waits: Suspended) -> Suspended {
    link.mask.value(&mut waits.note);
    if let Until::Later { status: Some(status), .. } = &mut waits.until {
        *status = link.mask.shown(status).into_owned();
    }
    waits
}

/// What the server says about a task's progress.
fn status(task: &Value) -> Option<String> {
    let said = task.get("statusMessage").and_then(Value::as_str).filter(|said| !said.trim().is_empty())?;
    Some(truncated(&escaped(said)))
}

fn zero(count: &u32) -> bool {
    *count == 0
}

fn pause(task: &Value) -> Option<Duration> {
    task.get("pollIntervalMs").and_then(Value::as_u64).map(Duration::from_millis)
}

/// What users are shown: one form, or one with a property for each key.
async fn question(asked: Option<&Map<String, Value>>, server: &str, tool: &str) -> Result<Value, String> {
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
    if hides_values(&form) {
        return Err("requests input with a form that has invisible characters in names or values".into());
    }
    let (message, mut form) = (escaped(&message).into_owned(), form);
    rewrite(&mut form, escaped);
    if let Err(error) = schema::check(&form).await {
        return Err(format!("requests input with a form that cannot be used: {}", truncated(&error.to_string())));
    }
    Ok(json!({"message": message, "form": form, "server": server, "tool": tool}))
}

/// Whether a name or a value that a user would send back has characters that the user does not see.
fn hides_values(form: &Value) -> bool {
    match form {
        Value::Array(items) => items.iter().any(hides_values),
        Value::Object(fields) => fields.iter().any(|(name, field)| {
            let is_value = ["enum", "const", "default", "required", "pattern"].contains(&name.as_str());
            has_unseen(name) || if is_value { hides_text(field) } else { hides_values(field) }
        }),
        _ => false,
    }
}

fn hides_text(value: &Value) -> bool {
    match value {
        Value::String(text) => has_unseen(text),
        Value::Array(items) => items.iter().any(hides_text),
        Value::Object(fields) => fields.iter().any(|(name, field)| has_unseen(name) || hides_text(field)),
        _ => false,
    }
}

fn part(request: &Value) -> Result<(String, Value), String> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or("an unknown method");
    let params = request.get("params").unwrap_or(&Value::Null);
    let mode = params.get("mode").and_then(Value::as_str).unwrap_or("form");
    if method != "elicitation/create" || mode != "form" {
        let mode = if method == "elicitation/create" { format!(" ({})", truncated(mode)) } else { String::new() };
        return Err(format!("requests {}{mode}, but only questions with a form are supported", truncated(method)));
    }
    let message = params.get("message").and_then(Value::as_str).unwrap_or("A tool asks for input.").to_owned();
    let form = params.get("requestedSchema").cloned().unwrap_or_else(|| json!({"type": "object"}));
    Ok((message, form))
}

/// Sends a task the answers, or polls its state.
pub async fn poll(tool_call: &ToolCall<'_>, mut note: Note) -> Result<Outcome, CallEnd> {
    let link = tool_call.link()?;
    let task = note.task.clone().unwrap_or_default();
    if let Some(responses) = note.responses() {
        let params = UpdateTaskParams::new(task, responses);
        let (response, _) =
            tool_call.send(&link, ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params))).await;
        return match response {
            Ok(_) => {
                let asked = note.asked.take().into_iter().flatten();
                note.given.extend(asked.map(|(key, request)| (key, digest(&request))));
                (note.answer, note.repeats) = (None, 0);
                Err(CallEnd::Waiting(note.later(Some(MIN_PAUSE), None).into()))
            }
            Err(RequestError::Unsent(_) | RequestError::Lost(_)) => {
                Err(CallEnd::Waiting(note.later(None, None).into()))
            }
            Err(RequestError::Rejected { code, message }) => Err(task_error(&link, code, &message).into()),
            Err(error) => Ok(tool_call.failure(error)),
        };
    }
    let params = GetTaskParams::new(task);
    let (response, log) = tool_call.send(&link, ClientRequest::GetTaskRequest(GetTaskRequest::new(params))).await;
    let mut state = match response {
        Ok(state) => state,
        // An unavailable server says nothing about the task.
        Err(RequestError::Unsent(_) | RequestError::Lost(_)) => {
            return Err(CallEnd::Waiting(note.later(None, None).into()));
        }
        Err(RequestError::Rejected { code, message }) => return Err(task_error(&link, code, &message).into()),
        Err(error) => return Ok(tool_call.failure(error)),
    };
    let describe = |what: &str| {
        let message = state.get("statusMessage").and_then(Value::as_str).map(|message| format!(": {message}"));
        truncated(&link.mask.shown(&format!("the task {what}{}", message.unwrap_or_default())))
    };
    match state.get("status").and_then(Value::as_str) {
        Some("completed") => {
            let result = state.get_mut("result").map(Value::take).unwrap_or_default();
            Ok(tool_call.ended(&link, result, log).await)
        }
        Some("failed") => {
            let error = state.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
            let message = error.map_or_else(|| describe("failed"), |error| truncated(&link.mask.shown(error)));
            Err(Failure { may_have_happened: true, ..Failure::new("task_failed", message) }.into())
        }
        Some("cancelled") => {
            let failure = Failure::new("task_cancelled", describe("was cancelled by its server"));
            Err(Failure { may_have_happened: true, ..failure }.into())
        }
        Some("input_required") => {
            if let Some(why) = state.get("inputRequests").and_then(too_large) {
                return Err(disconnect(&note.server, &link, &why));
            }
            let asked = state.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
            // Stored masked, so what was answered can only be recognised masked.
            let mut asked = Value::Object(asked);
            link.mask.value(&mut asked);
            let Value::Object(asked) = asked else { return Err(CallEnd::Waiting(note.later(None, None).into())) };
            let open = note.open(asked);
            if open.is_empty() {
                return Err(CallEnd::Waiting(masked(&link, note.later(pause(&state), status(&state))).into()));
            }
            note.asked = Some(open);
            Err(note.ask(tool_call).await)
        }
        _ => {
            note.forget_answers();
            Err(CallEnd::Waiting(masked(&link, note.later(pause(&state), status(&state))).into()))
        }
    }
}

/// Classifies an error on a task. A server that was restarted does not know its earlier tasks.
fn task_error(link: &Link, code: i32, message: &str) -> Failure {
    let unknown = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::RESOURCE_NOT_FOUND];
    let (code, what) = if unknown.contains(&ErrorCode(code)) {
        ("task_gone", "the server no longer knows the task")
    } else {
        ("task_failed", "the server cannot report the state of the task")
    };
    let message = link.mask.shown(&format!("{what}: {message}")).into_owned();
    Failure { may_have_happened: true, ..Failure::new(code, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_a_note_does_not_change() {
        let stored = json!({
            "server": "s", "tool": "t", "task": "1", "asked": {"a": {}}, "answer": 7, "told": ["b"], "state": "x", "rounds": 2,
        });
        let note = Note::read(&stored).unwrap();
        assert_eq!(note.answered, BTreeSet::from(["b".to_owned()]));
        assert_eq!(note.into_value(), stored);
        let newer = json!({
            "server": "s", "tool": "t", "began": 5, "task": "1", "given": {"a": "d"}, "repeats": 1, "rounds": 0,
        });
        assert_eq!(Note::read(&newer).unwrap().into_value(), newer);
        let shortest = json!({"server": "s", "tool": "t", "rounds": 0});
        assert_eq!(Note::read(&shortest).unwrap().into_value(), shortest);
    }

    #[tokio::test]
    async fn a_question_with_a_hostile_form_is_refused() {
        let form = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
        let request = |form: Value| json!({"method": "elicitation/create", "params": {"requestedSchema": form}});
        let asked = |form: Value| Map::from_iter([("k".to_owned(), request(form))]);
        let refused = question(Some(&asked(form)), "s", "t").await;
        assert!(refused.is_err_and(|why| why.contains("a form that cannot be used")));
        assert!(question(Some(&asked(json!({"type": "object"}))), "s", "t").await.is_ok());
    }
}
