//! Gates as elicitation requests to the user of a client, and their answers.
//!
//! The key of a request is the gate's path, its attempt and the digest of what is shown, so an answer is valid only for
//! exactly that. Over MCP, answering gates requires the right to be granted explicitly: an administrator's key used by
//! a program does not suffice.

use crate::app::App;
use crate::error::Problem;
use crate::view::{ApprovalView, Run};
use rmcp::model::InputRequest;
use serde_json::{Map, Value, json};
use stepwell_core::approval::{call_lines, shows_all, without_answer};
use stepwell_engine::Caller;
use stepwell_engine::commands::{Decision, Right};

/// Maximum number of gates of one run that are read.
const MOST: usize = 20;
/// Characters of a question. A longer one is not asked over MCP, because a client may cut it.
const MAX_QUESTION: usize = 8_000;
/// Fields of every request besides the gate's own form.
const DECISION: &str = "decision";
const COMMENT: &str = "comment";
/// The field for the whole form as JSON, if it cannot be asked field by field.
const DATA: &str = "data";

/// Whether this caller may answer gates over MCP.
pub fn may_answer(caller: &Caller) -> bool {
    caller.may(Right::Approve) && caller.grants.names().iter().any(|grant| grant == Right::Approve.name())
}

/// The open gates of a run that the caller may see, with those the caller may answer marked.
pub async fn open(app: &App, caller: &Caller, run: &Run) -> Result<Vec<ApprovalView>, Problem> {
    let mut found = Vec::new();
    for wait in run.waiting_for.iter().filter(|wait| wait.what == "approval").take(MOST) {
        // Answered just now, or not visible to the caller.
        let Ok(approval) = app.engine.gates(caller).get(&run.id, &wait.step).await else { continue };
        let mut view = ApprovalView::from(approval);
        view.mine &= may_answer(caller) && !view.approved_by.iter().any(|by| **by == *caller.name);
        found.push(view);
    }
    Ok(found)
}

/// The key of a request.
pub fn key(approval: &ApprovalView) -> String {
    format!("{}#{}@{}", approval.step, approval.attempt, approval.digest.as_deref().unwrap_or_default())
}

/// The path of the gate in a key.
pub fn path(key: &str) -> &str {
    let before = key.rsplit_once('@').map_or(key, |(before, _)| before);
    before.rsplit_once('#').map_or(before, |(path, _)| path)
}

/// The elicitation request of a gate. `None` if it cannot be expressed as one, or not shown in full.
pub fn question(approval: &ApprovalView) -> Option<InputRequest> {
    if !fits(approval) {
        return None;
    }
    let asked = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message(approval), "requestedSchema": schema(&approval.asks["form"])}});
    serde_json::from_value(asked).ok().or_else(|| {
        let asked = json!({"method": "elicitation/create", "params": {
            "mode": "form", "message": message(approval), "requestedSchema": whole(&approval.asks["form"])}});
        serde_json::from_value(asked).ok()
    })
}

/// Whether everything that the gate asks can be shown to a person over MCP.
pub fn fits(approval: &ApprovalView) -> bool {
    let form = approval.asks["form"].to_string();
    shows_all(&approval.asks) && message(approval).chars().count() + form.chars().count() <= MAX_QUESTION
}

fn message(approval: &ApprovalView) -> String {
    let asks = &approval.asks;
    let mut text = format!("Workflow {:?} asks at {:?}", approval.workflow, approval.step);
    match asks["message"].as_str().filter(|message| !message.is_empty()) {
        Some(message) => text += &format!(": {message}"),
        None => text += " for an approval.",
    }
    let calls = call_lines(asks, usize::MAX);
    if !calls.is_empty() {
        text += &format!("\nCalls to approve:\n- {}", calls.join("\n- "));
    }
    text += &format!("\nAsked by {}.", approval.asked_by);
    text += &format!("\n{}", without_answer(approval.until.map(|until| until.0), approval.on_timeout.as_deref()));
    text
}

fn asked() -> Map<String, Value> {
    let mut fields = Map::new();
    let decision = json!({"type": "string", "title": "Decision", "enum": ["approve", "deny"]});
    fields.insert(DECISION.into(), decision);
    fields.insert(COMMENT.into(), json!({"type": "string", "title": "Comment"}));
    fields
}

/// Our fields and those of the gate's form, if they are plain values with other names.
fn schema(form: &Value) -> Value {
    let Some(properties) = fields(form) else { return whole(form) };
    let mut all = asked();
    all.extend(properties.clone());
    // Denying needs no data, so required fields are checked when the answer arrives.
    json!({"type": "object", "properties": all, "required": [DECISION]})
}

fn whole(form: &Value) -> Value {
    let mut all = asked();
    if !form.is_null() {
        let description = format!("JSON that matches this schema: {form}");
        all.insert(DATA.into(), json!({"type": "string", "title": "Data", "description": description}));
    }
    json!({"type": "object", "properties": all, "required": [DECISION]})
}

/// The fields of the form, if a client can ask for each of them.
fn fields(form: &Value) -> Option<&Map<String, Value>> {
    let properties = form.get("properties")?.as_object()?;
    let plain = |(name, field): (&String, &Value)| {
        ![DECISION, COMMENT, DATA].contains(&name.as_str())
            && matches!(field["type"].as_str(), Some("string" | "number" | "integer" | "boolean"))
    };
    properties.iter().all(plain).then_some(properties)
}

/// Parses an answer. `None` if the user dismissed the request: the gate stays open.
pub fn decision(approval: &ApprovalView, response: &Value) -> Result<Option<Decision>, String> {
    let digest = approval.digest.clone();
    let content = &response["content"];
    let comment = content[COMMENT].as_str().filter(|comment| !comment.is_empty()).map(str::to_string);
    let deny = Decision { approve: false, comment: comment.clone(), data: None, digest: digest.clone(), input: None };
    match response["action"].as_str() {
        Some("decline") => return Ok(Some(deny)),
        Some("cancel") => return Ok(None),
        Some("accept") => {}
        _ => return Err("the action of an answer must be accept, decline or cancel".into()),
    }
    match content[DECISION].as_str() {
        Some("approve") => {
            let data = data(&approval.asks["form"], content)?;
            Ok(Some(Decision { approve: true, comment, data, digest, input: None }))
        }
        Some("deny") => Ok(Some(deny)),
        _ => Err("the decision in the content must be approve or deny".into()),
    }
}

/// The text in an answer that is read as JSON.
pub fn json_text(response: &Value) -> Option<&str> {
    response["content"][DATA].as_str()
}

fn data(form: &Value, content: &Value) -> Result<Option<Value>, String> {
    if form.is_null() {
        return Ok(None);
    }
    if let Some(text) = content[DATA].as_str() {
        let read = serde_json::from_str(text).map_err(|error| format!("data is not JSON: {error}"))?;
        return Ok(Some(read));
    }
    let mut given = content.as_object().cloned().unwrap_or_default();
    given.retain(|name, _| ![DECISION, COMMENT].contains(&name.as_str()));
    Ok(Some(Value::Object(given)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Instant;
    use stepwell_core::time::Time;

    fn gate(form: Value) -> ApprovalView {
        ApprovalView {
            id: String::new(),
            run_id: "run_1".into(),
            step: "each[3].ask#me@home".into(),
            workflow: "w".into(),
            version: 1,
            attempt: 2,
            asks: json!({"message": "well?", "form": form}),
            digest: Some("abc".into()),
            approvals: 1,
            approved_by: Vec::new(),
            escalates_at: None,
            escalated: false,
            since: Instant(Time(0)),
            until: None,
            on_timeout: None,
            warnings: Vec::new(),
            created_by: "ann".into(),
            asked_by: "agent key desk of ann, client bot 1".into(),
            kind: "approval".into(),
            mine: true,
        }
    }

    #[test]
    fn the_name_of_a_question_leads_back_to_its_gate() {
        assert_eq!(key(&gate(Value::Null)), "each[3].ask#me@home#2@abc");
        assert_eq!(path(&key(&gate(Value::Null))), "each[3].ask#me@home");
        assert_eq!(path("plain"), "plain");
    }

    #[test]
    fn a_plain_form_is_asked_field_by_field_and_any_other_as_text() {
        let asked = |form: Value| {
            let question = serde_json::to_value(question(&gate(form)).unwrap()).unwrap();
            let fields = question["params"]["requestedSchema"]["properties"].as_object().unwrap().clone();
            fields.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(asked(Value::Null), "decision comment");
        assert_eq!(asked(json!({"properties": {"amount": {"type": "number"}}})), "decision comment amount");
        assert_eq!(asked(json!({"properties": {"amount": {"type": "array"}}})), "decision comment data");
        assert_eq!(asked(json!({"properties": {"decision": {"type": "string"}}})), "decision comment data");
        assert_eq!(asked(json!({"type": "array"})), "decision comment data");
    }

    #[test]
    fn a_question_lists_every_call_or_is_not_asked() {
        let asked = |asks: Value| {
            let gate = ApprovalView { asks, on_timeout: Some("approve".into()), ..gate(Value::Null) };
            let gate = ApprovalView { until: Some(Instant(Time(0))), ..gate };
            let question = serde_json::to_value(question(&gate)).unwrap();
            question["params"]["message"].as_str().map(str::to_string)
        };
        let call = |n: usize, text: &str| json!({"step": format!("c{n}"), "kind": "tool", "tool": "t", "input": text});
        let calls: Vec<Value> = (0..100).map(|n| call(n, "x")).collect();
        let shown = asked(json!({"message": "well?", "calls": calls, "on_denial": [call(7, "y")]})).unwrap();
        assert!((0..100).all(|n| shown.contains(&format!("\n- c{n}: tool t \"x\"\n"))), "{shown}");
        assert!(shown.contains("\n- if denied: c7: tool t \"y\"\n"), "{shown}");
        assert!(shown.ends_with("Without an answer by 1970-01-01T00:00:00.000Z it counts as approved."), "{shown}");
        for cut in [
            json!({"calls": [call(0, &"x".repeat(MAX_QUESTION))]}),
            json!({"calls": [{"step": "a", "kind": "tool", "too_large_to_show": true}]}),
            json!({"calls": [call(0, "x")], "more_calls": 1}),
            json!({"message": "x".repeat(MAX_QUESTION)}),
        ] {
            assert_eq!(asked(cut), None);
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_meant() {
        let form = json!({"properties": {"amount": {"type": "number"}}});
        let read = |response: Value| decision(&gate(form.clone()), &response);
        let given = json!({"action": "accept", "content": {"decision": "approve", "comment": "ok", "amount": 3}});
        let approved = read(given).unwrap().unwrap();
        assert!(approved.approve && approved.digest.as_deref() == Some("abc"));
        assert_eq!((approved.comment.as_deref(), approved.data), (Some("ok"), Some(json!({"amount": 3}))));
        let whole = json!({"action": "accept", "content": {"decision": "approve", "data": "{\"amount\": 4}"}});
        assert_eq!(read(whole).unwrap().unwrap().data, Some(json!({"amount": 4})));
        assert!(!read(json!({"action": "accept", "content": {"decision": "deny"}})).unwrap().unwrap().approve);
        assert!(!read(json!({"action": "decline"})).unwrap().unwrap().approve);
        assert_eq!(read(json!({"action": "cancel"})).unwrap(), None);
        assert!(read(json!({"action": "accept", "content": {}})).is_err());
        assert!(read(json!({})).is_err());
        assert!(read(json!("yes")).is_err());
    }
}
