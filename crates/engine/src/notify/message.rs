//! What there is to tell about a transition, and how it reads. Pure.

use crate::run::Live;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_core::fact::{Fact, Reason, Wait};
use stepwell_core::graph::Kind;
use stepwell_core::run::{At, Phase, RunStatus, Status, StepState};
use stepwell_core::time::Time;
use stepwell_store::OrgId;

/// Characters of what a gate asks or why a run failed: a notification is no place for more.
const MAX_TEXT: usize = 1_000;
const MAX_NAME: usize = 100;
/// Names of people that one message or gate has.
const MAX_PEOPLE: usize = 100;

/// What people can be told of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    GateOpened,
    GateEscalated,
    GateAnswered,
    GateExpired,
    RunFailed,
    /// Somebody tries a channel. Cannot be chosen.
    Test,
}

impl Topic {
    /// Those that can be chosen.
    pub const ALL: [Topic; 5] =
        [Topic::GateOpened, Topic::GateEscalated, Topic::GateAnswered, Topic::GateExpired, Topic::RunFailed];

    pub fn name(self) -> &'static str {
        match self {
            Topic::GateOpened => "gate_opened",
            Topic::GateEscalated => "gate_escalated",
            Topic::GateAnswered => "gate_answered",
            Topic::GateExpired => "gate_expired",
            Topic::RunFailed => "run_failed",
            Topic::Test => "test",
        }
    }

    /// It asks for an answer: once there is one, nobody needs to hear of it.
    pub fn asks(self) -> bool {
        matches!(self, Topic::GateOpened | Topic::GateEscalated)
    }
}

/// What is told. Everything in it is bounded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    pub topic: Topic,
    pub at: Time,
    pub workflow: String,
    pub run: String,
    /// Path of the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub attempt: u32,
    /// What the gate asks, how it was answered, or why the run failed.
    pub text: String,
    /// Who may answer by name; without any, whoever has the right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answerers: Vec<String>,
    /// When the gate closes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    pub started_by: String,
}

impl Message {
    /// For whoever tries a channel.
    pub fn test(by: &str, at: Time) -> Message {
        Message {
            topic: Topic::Test,
            at,
            workflow: String::new(),
            run: String::new(),
            step: None,
            attempt: 0,
            text: format!("{by} asked Stepwell to try this channel. It works."),
            answerers: Vec::new(),
            until: None,
            started_by: by.to_string(),
        }
    }

    /// One line.
    pub fn title(&self) -> String {
        let Message { workflow, .. } = self;
        match self.topic {
            Topic::GateOpened => format!("{workflow}: approval needed"),
            Topic::GateEscalated => format!("{workflow}: approval still needed"),
            Topic::GateAnswered => format!("{workflow}: answered"),
            Topic::GateExpired => format!("{workflow}: nobody answered in time"),
            Topic::RunFailed => format!("{workflow}: run failed"),
            Topic::Test => "Stepwell: a test".to_string(),
        }
        .replace('\n', " ")
    }

    /// All of it as plain text, without the title and the link.
    pub fn lines(&self) -> String {
        let mut lines = vec![self.text.clone()];
        if self.topic.asks() {
            lines.push(match self.answerers.as_slice() {
                [] => "Who may answer: everyone with the right workflow.approve".to_string(),
                names => format!("Who may answer: {}", names.join(", ")),
            });
            lines.extend(self.until.map(|until| format!("Until: {until}")));
        }
        lines.extend(self.step.as_ref().map(|step| format!("Step: {step}")));
        if !self.run.is_empty() {
            lines.push(format!("Run: {}, started by {}", self.run, self.started_by));
        }
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }
}

/// Something to tell, and to whom: what the body of a notice says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Told {
    pub org: OrgId,
    pub message: Message,
    /// Users or roles, as they were written. Channels of the organisation are told all the same.
    pub to: Vec<String>,
}

impl Told {
    /// Within its run: told once.
    pub fn key(&self) -> String {
        let Message { topic, attempt, step, .. } = &self.message;
        format!("{}{}:{attempt}:{}", super::spread::PREFIX, topic.name(), step.as_deref().unwrap_or_default())
    }
}

/// What these facts, which have been applied to the run, give to tell.
pub fn occurrences<'f>(live: &Live, facts: impl IntoIterator<Item = &'f Fact>, now: Time) -> Vec<Told> {
    if live.test {
        return Vec::new();
    }
    facts.into_iter().filter_map(|fact| occurrence(live, fact, now)).collect()
}

fn occurrence(live: &Live, fact: &Fact, now: Time) -> Option<Told> {
    match fact {
        Fact::Entered { step, attempt, wait: Wait::Gate { .. }, .. } => asked(live, (*step, *attempt), now, false),
        Fact::Held { step, attempt, .. } => asked(live, (*step, *attempt), now, false),
        Fact::Again { step, attempt, reason: Reason::Approved, .. } => {
            let approvals = &state(live, *step)?.more.as_ref()?.approvals;
            let names: Vec<&str> = approvals.iter().map(|(by, _)| &**by).collect();
            let path = live.run.path(&live.compiled.definition.graph, *step);
            let about = (Topic::GateAnswered, Some(path), attempt - 1);
            Some(to_starter(live, message(live, about, &format!("approved by {}", names.join(", ")), now)))
        }
        Fact::Unsure { step, attempt } => unsure(live, (*step, *attempt), now),
        Fact::Escalated { step, .. } => {
            let attempt = state(live, *step)?.attempt;
            asked(live, (*step, attempt), now, true)
        }
        Fact::Finished { step, attempt, status, output, .. } => {
            // A held call that was denied tells it in the same words.
            let gate = matches!(live.compiled.definition.graph.step(step.step).def.kind, Kind::Gate(_));
            if !gate && *status != Status::Denied {
                return None;
            }
            answered(live, (*step, *attempt), live.run.values.get((*output)?.body)?, now)
        }
        Fact::Ended { status: status @ (RunStatus::Failed | RunStatus::Timeout), failure, .. } => {
            // Of a child its parent hears, and fails, or goes on.
            if live.parent.is_some() {
                return None;
            }
            let why = failure.as_ref().or(live.run.failure.as_ref()).map(|failure| failure.message.to_string());
            let text = why.unwrap_or_else(|| format!("the run ended as {}", status.name()));
            let message = message(live, (Topic::RunFailed, None, live.run.generation), &text, now);
            Some(to_starter(live, message))
        }
        Fact::Created { .. }
        | Fact::Started { .. }
        | Fact::Entered { .. }
        | Fact::Retrying { .. }
        | Fact::Again { .. }
        | Fact::Opened { .. }
        | Fact::Closed { .. }
        | Fact::Skipped { .. }
        | Fact::Kept { .. }
        | Fact::Approved { .. }
        | Fact::Overridden { .. }
        | Fact::Ended { .. }
        | Fact::Retried { .. }
        | Fact::Adopted { .. } => None,
    }
}

fn state(live: &Live, at: At) -> Option<&StepState> {
    live.run.step(&live.compiled.definition.graph, at)
}

/// Whether the gate still waits for an answer.
pub fn is_open(live: &Live, path: &str, attempt: u32) -> bool {
    let at = live.run.find(&live.compiled.definition.graph, path);
    let state = at.and_then(|at| state(live, at)).filter(|state| state.attempt == attempt);
    !live.run.status.is_terminal() && state.is_some_and(|state| matches!(state.phase, Phase::Gate | Phase::Unsure))
}

/// Several events may share a commit: a gate that is closed again by its end asks nobody.
fn asked(live: &Live, (at, attempt): (At, u32), now: Time, escalated: bool) -> Option<Told> {
    let path = live.run.path(&live.compiled.definition.graph, at);
    if !is_open(live, &path, attempt) {
        return None;
    }
    let state = state(live, at)?;
    let ask = live.run.ask(state);
    let text = ask.and_then(|ask| ask.get("message")).and_then(Value::as_str).unwrap_or_default();
    let (approvers, others) = (names(ask, "approvers"), names(ask, "escalate_to"));
    let named = names(ask, "notify");
    let usual = if named.is_empty() { approvers.clone() } else { named };
    let topic = if escalated { Topic::GateEscalated } else { Topic::GateOpened };
    let (to, answerers) = match escalated {
        true if !others.is_empty() => (others.clone(), [approvers, others].concat()),
        _ => (usual, approvers),
    };
    let message = message(live, (topic, Some(path), attempt), text, now);
    Some(Told { org: live.org, message: Message { answerers, until: state.due, ..message }, to })
}

fn unsure(live: &Live, (at, attempt): (At, u32), now: Time) -> Option<Told> {
    let path = live.run.path(&live.compiled.definition.graph, at);
    if !is_open(live, &path, attempt) {
        return None;
    }
    let text = "A call may or may not have happened, and may not be made twice: say what became of it.";
    let message = message(live, (Topic::GateOpened, Some(path), attempt), text, now);
    Some(Told { org: live.org, message, to: Vec::new() })
}

fn answered(live: &Live, (at, attempt): (At, u32), body: &Value, now: Time) -> Option<Told> {
    let field = |name: &str| body.get(name).and_then(Value::as_str);
    let decision = field("decision")?;
    let expired = field("reason") == Some("expired");
    let text = match (field("by"), field("comment")) {
        (Some(by), Some(comment)) => format!("{decision} by {by}: {comment}"),
        (Some(by), None) => format!("{decision} by {by}"),
        (None, _) => format!("It counts as {decision}."),
    };
    let topic = if expired { Topic::GateExpired } else { Topic::GateAnswered };
    let path = live.run.path(&live.compiled.definition.graph, at);
    Some(to_starter(live, message(live, (topic, Some(path), attempt), &text, now)))
}

fn to_starter(live: &Live, message: Message) -> Told {
    Told { org: live.org, message, to: vec![live.run.by.to_string()] }
}

fn message(live: &Live, (topic, step, attempt): (Topic, Option<String>, u32), text: &str, now: Time) -> Message {
    Message {
        topic,
        at: now,
        workflow: cut(&live.compiled.row.name, MAX_NAME),
        run: live.run.id.to_string(),
        step,
        attempt,
        text: cut(text, MAX_TEXT),
        answerers: Vec::new(),
        until: None,
        started_by: cut(&live.run.by, MAX_NAME),
    }
}

/// One name or a list of them.
fn names(ask: Option<&Value>, field: &str) -> Vec<String> {
    let list = match ask.and_then(|ask| ask.get(field)) {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    list.into_iter().take(MAX_PEOPLE).map(|name| cut(name, MAX_NAME)).collect()
}

/// Says where something was left out. Only line breaks are left of what cannot be printed.
pub fn cut(text: &str, most: usize) -> String {
    let printable = |c: &char| !c.is_control() || *c == '\n';
    let mut short: String = text.chars().filter(printable).take(most).collect();
    if text.chars().filter(printable).count() > most {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_cut_and_says_so() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc…");
        assert_eq!(cut("a\u{7}\r\nb", 10), "a\nb");
    }

    #[test]
    fn a_question_says_who_may_answer_and_until_when() {
        let message = Message {
            topic: Topic::GateOpened,
            workflow: "deploy".into(),
            run: "run_1".into(),
            step: Some("ask".into()),
            text: "Deploy 1.2?".into(),
            answerers: vec!["ann".into(), "bob".into()],
            until: Time::parse("2026-02-22T10:00:00Z"),
            ..Message::test("eve", Time(0))
        };
        assert_eq!(message.title(), "deploy: approval needed");
        let expected = "Deploy 1.2?\nWho may answer: ann, bob\nUntil: 2026-02-22T10:00:00.000Z\nStep: ask\n\
                        Run: run_1, started by eve";
        assert_eq!(message.lines(), expected);
    }
}
