//! The notifications that a transition causes, and their text. Pure.

use crate::run::Live;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stepwell_core::approval::without_answer;
use stepwell_core::fact::{Fact, Reason, Wait};
use stepwell_core::graph::{Kind, OnTimeout};
use stepwell_core::run::{At, Phase, RunStatus, Status, StepState};
use stepwell_core::time::Time;
use stepwell_store::OrgId;

/// Characters of a gate's question or a run's failure: a notification should be short.
const MAX_TEXT: usize = 1_000;
const MAX_NAME: usize = 100;
/// Names of users and roles in one field of a gate.
const MAX_PEOPLE: usize = 100;

/// The event that a notification is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    GateOpened,
    GateEscalated,
    GateAnswered,
    GateExpired,
    RunFailed,
    /// No node drives the run until a person decides. Users who subscribe to failed runs get it.
    RunQuarantined,
    /// A user tests a channel. Users cannot subscribe to it.
    Test,
}

impl Topic {
    /// The topics that users can subscribe to.
    pub const ALL: [Topic; 5] =
        [Topic::GateOpened, Topic::GateEscalated, Topic::GateAnswered, Topic::GateExpired, Topic::RunFailed];

    pub fn name(self) -> &'static str {
        match self {
            Topic::GateOpened => "gate_opened",
            Topic::GateEscalated => "gate_escalated",
            Topic::GateAnswered => "gate_answered",
            Topic::GateExpired => "gate_expired",
            Topic::RunFailed => "run_failed",
            Topic::RunQuarantined => "run_quarantined",
            Topic::Test => "test",
        }
    }

    /// The topic that users subscribe to for this one.
    pub fn subscribed(self) -> Topic {
        if self == Topic::RunQuarantined { Topic::RunFailed } else { self }
    }

    /// Whether it asks for an answer. Once the gate is answered, such a message need not be sent.
    pub fn asks(self) -> bool {
        matches!(self, Topic::GateOpened | Topic::GateEscalated)
    }
}

/// A notification. All its fields are bounded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    pub topic: Topic,
    pub at: Time,
    pub workflow: String,
    pub run: String,
    /// The path of the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub attempt: u32,
    /// The question of the gate, its answer, or why the run failed.
    pub text: String,
    /// Users and roles who may answer. If empty, all users with the right to approve may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answerers: Vec<String>,
    /// When the gate expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// What happens then: `approve` or `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<String>,
    pub started_by: String,
}

impl Message {
    /// The message that tests a channel.
    pub fn test(by: &str, at: Time) -> Message {
        Message {
            topic: Topic::Test,
            at,
            workflow: String::new(),
            run: String::new(),
            step: None,
            attempt: 0,
            text: format!("{by} sent this test message. The channel works."),
            answerers: Vec::new(),
            until: None,
            on_timeout: None,
            started_by: by.to_string(),
        }
    }

    /// The title, in one line.
    pub fn title(&self) -> String {
        let Message { workflow, .. } = self;
        match self.topic {
            Topic::GateOpened => format!("{workflow}: approval needed"),
            Topic::GateEscalated => format!("{workflow}: approval still needed"),
            Topic::GateAnswered => format!("{workflow}: answered"),
            Topic::GateExpired => format!("{workflow}: approval expired"),
            Topic::RunFailed => format!("{workflow}: run failed"),
            Topic::RunQuarantined => format!("{workflow}: run quarantined"),
            Topic::Test => "Stepwell: test message".to_string(),
        }
        .replace('\n', " ")
    }

    /// The body as plain text, without the title and the link.
    pub fn lines(&self) -> String {
        let mut lines = vec![self.text.clone()];
        if self.topic.asks() {
            lines.push(match self.answerers.as_slice() {
                [] => "Who may answer: all users with the right workflow.approve".to_string(),
                names => format!("Who may answer: {}", names.join(", ")),
            });
            lines.push(without_answer(self.until, self.on_timeout.as_deref()));
        }
        lines.extend(self.step.as_ref().map(|step| format!("Step: {step}")));
        if !self.run.is_empty() {
            lines.push(format!("Run: {}, started by {}", self.run, self.started_by));
        }
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }
}

/// A message and its recipients: the body of a notice.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Occurrence {
    pub org: OrgId,
    pub message: Message,
    /// Users or roles, as written in the definition. Channels of the organisation always receive the message.
    pub to: Vec<String>,
}

impl Occurrence {
    /// The key of the notice. It is unique within the run, so that the message is sent once.
    pub fn key(&self) -> String {
        let Message { topic, attempt, step, .. } = &self.message;
        format!("{}{}:{attempt}:{}", super::recipients::PREFIX, topic.name(), step.as_deref().unwrap_or_default())
    }
}

/// The notifications that these facts cause. The facts must already be applied to the run.
pub fn occurrences<'f>(live: &Live, facts: impl IntoIterator<Item = &'f Fact>, now: Time) -> Vec<Occurrence> {
    if live.test {
        return Vec::new();
    }
    facts.into_iter().filter_map(|fact| occurrence(live, fact, now)).collect()
}

fn occurrence(live: &Live, fact: &Fact, now: Time) -> Option<Occurrence> {
    match fact {
        Fact::Entered { step, attempt, wait: Wait::Gate { .. }, .. } => asked(live, *step, *attempt, now, false),
        Fact::Held { step, attempt, .. } => asked(live, *step, *attempt, now, false),
        Fact::Again { step, attempt, reason: Reason::Approved, .. } => {
            let approvals = &state(live, *step)?.more.as_ref()?.approvals;
            let names: Vec<&str> = approvals.iter().map(|(by, _)| &**by).collect();
            let path = live.run.path(&live.compiled.definition.graph, *step);
            let about = About { topic: Topic::GateAnswered, step: Some(path), attempt: attempt - 1 };
            let changed = state(live, *step)?.more.as_ref()?.changed.as_ref();
            let changed = changed.map(|(by, _)| format!(", with changes by {by}")).unwrap_or_default();
            let text = format!("approved by {}{changed}", names.join(", "));
            Some(to_starter(live, message(live, about, &text, now)))
        }
        Fact::Unsure { step, attempt } => unsure(live, *step, *attempt, now),
        Fact::Escalated { step, .. } => {
            let attempt = state(live, *step)?.attempt;
            asked(live, *step, attempt, now, true)
        }
        Fact::Finished { step, attempt, status, output, .. } => {
            // A held call that was denied has the same output as a denied gate.
            let gate = matches!(live.compiled.definition.graph.step(step.step).def.kind, Kind::Gate(_));
            if !gate && *status != Status::Denied {
                return None;
            }
            answered(live, *step, *attempt, live.run.values.get((*output)?.body)?, now)
        }
        Fact::Ended { status: status @ (RunStatus::Failed | RunStatus::Timeout), failure, .. } => {
            // The parent of a child run decides whether to fail or to go on.
            if live.parent.is_some() {
                return None;
            }
            let why = failure.as_ref().or(live.run.failure.as_ref()).map(|failure| failure.message.to_string());
            let text = why.unwrap_or_else(|| format!("the run ended as {}", status.name()));
            let about = About { topic: Topic::RunFailed, step: None, attempt: live.run.generation };
            Some(to_starter(live, message(live, about, &text, now)))
        }
        Fact::Created { .. }
        | Fact::Scheduled { .. }
        | Fact::Due
        | Fact::Started { .. }
        | Fact::Entered { .. }
        | Fact::Retrying { .. }
        | Fact::Again { .. }
        | Fact::Opened { .. }
        | Fact::Closed { .. }
        | Fact::Skipped { .. }
        | Fact::Kept { .. }
        | Fact::Approved { .. }
        | Fact::Changed { .. }
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

/// The notification of an open gate. `None` if a later event of the same commit closed it.
fn asked(live: &Live, at: At, attempt: u32, now: Time, escalated: bool) -> Option<Occurrence> {
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
    let message = message(live, About { topic, step: Some(path), attempt }, text, now);
    let (until, on_timeout) = (state.due, on_timeout(live, at, state).map(str::to_string));
    Some(Occurrence { org: live.org, message: Message { answerers, until, on_timeout, ..message }, to })
}

/// What happens to an open request at its deadline: `approve` or `deny`. `None` if it has none.
pub fn on_timeout(live: &Live, at: At, state: &StepState) -> Option<&'static str> {
    state.due.filter(|_| state.phase == Phase::Gate)?;
    Some(match &live.compiled.definition.graph.step(at.step).def.kind {
        Kind::Gate(gate) => gate.on_timeout.name(),
        _ => OnTimeout::Deny.name(),
    })
}

/// The notification of a call whose outcome is unknown.
fn unsure(live: &Live, at: At, attempt: u32, now: Time) -> Option<Occurrence> {
    let path = live.run.path(&live.compiled.definition.graph, at);
    if !is_open(live, &path, attempt) {
        return None;
    }
    let quarantined = state(live, at)?.is_quarantined();
    let text = match quarantined {
        true => "The server ended several times in a row while this step ran: decide whether it runs again.",
        false => "It is unknown whether a call happened, and it must not be repeated: decide how the step ended.",
    };
    let message = message(live, About { topic: Topic::GateOpened, step: Some(path), attempt }, text, now);
    let to = if quarantined { vec![live.run.by.to_string()] } else { Vec::new() };
    Some(Occurrence { org: live.org, message, to })
}

/// The notification of a gate that was answered or has expired.
fn answered(live: &Live, at: At, attempt: u32, body: &Value, now: Time) -> Option<Occurrence> {
    let field = |name: &str| body.get(name).and_then(Value::as_str);
    let decision = field("decision")?;
    let expired = field("reason") == Some("expired");
    let text = match (field("by"), field("comment")) {
        (Some(by), Some(comment)) => format!("{decision} by {by}: {comment}"),
        (Some(by), None) => format!("{decision} by {by}"),
        (None, _) => format!("The gate counts as {decision}."),
    };
    let topic = if expired { Topic::GateExpired } else { Topic::GateAnswered };
    let path = live.run.path(&live.compiled.definition.graph, at);
    Some(to_starter(live, message(live, About { topic, step: Some(path), attempt }, &text, now)))
}

fn to_starter(live: &Live, message: Message) -> Occurrence {
    Occurrence { org: live.org, message, to: vec![live.run.by.to_string()] }
}

/// The event that a message is about.
struct About {
    topic: Topic,
    step: Option<String>,
    attempt: u32,
}

fn message(live: &Live, about: About, text: &str, now: Time) -> Message {
    let About { topic, step, attempt } = about;
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
        on_timeout: None,
        started_by: cut(&live.run.by, MAX_NAME),
    }
}

/// Reads one name or a list of names.
pub(super) fn names(ask: Option<&Value>, field: &str) -> Vec<String> {
    let list = match ask.and_then(|ask| ask.get(field)) {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    list.into_iter().take(MAX_PEOPLE).map(|name| cut(name, MAX_NAME)).collect()
}

/// Shortens a text and marks the cut with `…`. Control characters except line breaks are removed.
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
    fn a_text_that_is_too_long_is_cut_and_marked() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc…");
        assert_eq!(cut("a\u{7}\r\nb", 10), "a\nb");
    }

    #[test]
    fn a_question_lists_who_may_answer_and_until_when() {
        let message = Message {
            topic: Topic::GateOpened,
            workflow: "deploy".into(),
            run: "run_1".into(),
            step: Some("ask".into()),
            text: "Deploy 1.2?".into(),
            answerers: vec!["ann".into(), "bob".into()],
            until: Time::parse("2026-02-22T10:00:00Z"),
            on_timeout: Some("approve".into()),
            ..Message::test("eve", Time(0))
        };
        assert_eq!(message.title(), "deploy: approval needed");
        let expected = "Deploy 1.2?\nWho may answer: ann, bob\n\
                        Without an answer by 2026-02-22T10:00:00.000Z it counts as approved.\nStep: ask\n\
                        Run: run_1, started by eve";
        assert_eq!(message.lines(), expected);
    }
}
