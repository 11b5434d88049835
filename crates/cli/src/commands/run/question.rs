//! Questions of a run to the user at the terminal, one line at a time. Pure: lines go in, prompts and actions come out.

use crate::describe::brief;
use serde_json::Value;
use stepwell_core::approval::{call_lines, without_answer};
use stepwell_core::event::Verdict;
use stepwell_core::time::Time;
use stepwell_engine::commands::Decision;

/// Maximum characters shown of a form's schema.
const MAX_SCHEMA: usize = 400;

/// A question and the progress of its answer.
pub struct Question {
    asks: Asks,
    stage: Stage,
}

pub enum Asks {
    Approval {
        message: Option<String>,
        /// What follows an answer, and what happens without one.
        about: Vec<String>,
        /// The schema of the form.
        form: Option<Value>,
        /// Digest of the whole request.
        digest: Option<String>,
    },
    Call,
    Verdict,
}

enum Stage {
    Choose,
    /// Form data of an approval, or the result of a call that happened.
    Data,
    Comment(Decision),
}

/// The result of an input line.
#[derive(Debug)]
pub enum Next {
    /// Prompt again, after an error about the line, if any.
    Ask(Option<String>),
    Act(Action),
    /// The user does not want to answer now.
    Later,
}

#[derive(Debug)]
pub enum Action {
    Answer(Decision),
    Deliver(Value),
    Settle(Verdict),
}

impl Question {
    pub fn new(asks: Asks) -> Question {
        Question { asks, stage: Stage::Choose }
    }

    /// The question of a gate or a held call.
    pub fn gate(asks: &Value, until: Option<Time>) -> Question {
        let text = |field: &str| asks.get(field).and_then(Value::as_str).map(str::to_string);
        let mut about = call_lines(asks, usize::MAX);
        about.push(without_answer(until, text("on_timeout").as_deref()));
        let form = asks.get("form").cloned();
        Question::new(Asks::Approval { message: text("message"), about, form, digest: text("digest") })
    }

    /// Text to show before the first prompt.
    pub fn intro(&self, step: &str) -> String {
        match &self.asks {
            Asks::Approval { message, about, .. } => {
                let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
                let about: String = about.iter().map(|line| format!("\n  {line}")).collect();
                format!("{step} asks for approval{message}{about}")
            }
            Asks::Call => format!("{step} waits for a call to its URL, which only `stepwell serve` receives"),
            Asks::Verdict => format!("{step}: it is unknown whether its call happened, and it may not be made twice"),
        }
    }

    pub fn prompt(&self) -> String {
        match (&self.asks, &self.stage) {
            (Asks::Approval { .. }, Stage::Choose) => "approve? [y]es, [n]o, [l]ater: ".into(),
            (Asks::Approval { form: Some(form), .. }, Stage::Data) => {
                format!("the form expects {}\ndata as JSON: ", brief(form, MAX_SCHEMA))
            }
            (Asks::Call, _) => "the body of the call as JSON (empty: later): ".into(),
            (Asks::Verdict, Stage::Choose) => "it [h]appened, make it [a]gain, [f]ail, [l]ater: ".into(),
            (_, Stage::Data) => "its result as JSON (empty: null): ".into(),
            (_, Stage::Comment(_)) => "comment (may be empty): ".into(),
        }
    }

    pub fn take(&mut self, line: &str) -> Next {
        let line = line.trim();
        match (&self.asks, &mut self.stage) {
            (Asks::Approval { form, .. }, Stage::Choose) => match choice(line) {
                Some('y') if form.is_some() => self.go(Stage::Data),
                Some('y') => self.go(Stage::Comment(Decision { approve: true, ..Decision::default() })),
                Some('n' | 'd') => self.go(Stage::Comment(Decision::default())),
                Some('l') => Next::Later,
                _ => Next::Ask(Some("please answer with y, n or l".into())),
            },
            (Asks::Approval { .. }, Stage::Data) => match serde_json::from_str(line) {
                Ok(data) => {
                    self.go(Stage::Comment(Decision { approve: true, data: Some(data), ..Decision::default() }))
                }
                Err(error) => Next::Ask(Some(format!("this is not JSON: {error}"))),
            },
            (_, Stage::Comment(decision)) => {
                let comment = Some(line).filter(|line| !line.is_empty()).map(str::to_string);
                let digest = if let Asks::Approval { digest, .. } = &self.asks { digest.clone() } else { None };
                Next::Act(Action::Answer(Decision { comment, digest, ..std::mem::take(decision) }))
            }
            (Asks::Call, Stage::Choose | Stage::Data) => match line {
                "" => Next::Later,
                line => json(line, Action::Deliver),
            },
            (Asks::Verdict, Stage::Choose) => match choice(line) {
                Some('h') => self.go(Stage::Data),
                Some('a') => Next::Act(Action::Settle(Verdict::RunAgain)),
                Some('f') => Next::Act(Action::Settle(Verdict::Fail)),
                Some('l') => Next::Later,
                _ => Next::Ask(Some("please answer with h, a, f or l".into())),
            },
            (Asks::Verdict, Stage::Data) => {
                json(if line.is_empty() { "null" } else { line }, |body| Action::Settle(Verdict::Happened { body }))
            }
        }
    }

    fn go(&mut self, stage: Stage) -> Next {
        self.stage = stage;
        Next::Ask(None)
    }
}

fn choice(line: &str) -> Option<char> {
    line.chars().next().map(|first| first.to_ascii_lowercase())
}

fn json(line: &str, action: impl FnOnce(Value) -> Action) -> Next {
    match serde_json::from_str(line) {
        Ok(value) => Next::Act(action(value)),
        Err(error) => Next::Ask(Some(format!("this is not JSON: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Feeds lines to a question and compares the prompts and actions, as text.
    fn check(mut question: Question, lines: &[&str], expected: &str) {
        let mut result = String::new();
        for line in lines {
            match question.take(line) {
                Next::Ask(complaint) => {
                    result.push_str(complaint.as_deref().map_or("", |text| text.split(':').next().unwrap()));
                    result.push_str("; ");
                }
                Next::Act(Action::Answer(decision)) => {
                    result.push_str(&format!("{} {:?} {:?}", decision.approve, decision.comment, decision.data));
                    result.push_str(&decision.digest.map(|digest| format!(" of {digest}")).unwrap_or_default());
                }
                Next::Act(Action::Deliver(body)) => result.push_str(&format!("deliver {body}")),
                Next::Act(Action::Settle(verdict)) => result.push_str(&format!("{verdict:?}")),
                Next::Later => result.push_str("later"),
            }
        }
        assert_eq!(result, expected, "{lines:?}");
    }

    #[test]
    fn a_gate_is_approved_denied_or_postponed() {
        let gate = || Question::gate(&json!({"message": "Ship it?", "digest": "d1"}), None);
        let silence = "Without an answer it waits as long as the run lasts.";
        assert_eq!(gate().intro("ship"), format!("ship asks for approval: Ship it?\n  {silence}"));
        check(gate(), &["Yes", "fine"], "; true Some(\"fine\") None of d1");
        check(gate(), &["n", ""], "; false None None of d1");
        check(gate(), &["", "what", "l"], "please answer with y, n or l; please answer with y, n or l; later");
    }

    #[test]
    fn the_calls_that_an_approval_allows_are_shown_first() {
        let call = json!({"step": "pay", "kind": "tool", "input": {"tool": "pay", "args": {"sum": 3}}});
        let later = json!({"step": "tell", "kind": "http", "not_yet_known": true});
        let asks = json!({"calls": [call, later], "on_timeout": "approve"});
        let intro = Question::gate(&asks, Some(Time(0))).intro("pay");
        let expected = "pay asks for approval\n  pay: tool {\"tool\":\"pay\",\"args\":{\"sum\":3}}\n  \
            tell: http, with arguments that are not yet known and not covered\n  \
            Without an answer by 1970-01-01T00:00:00.000Z it counts as approved.";
        assert_eq!(intro, expected);
    }

    #[test]
    fn a_form_is_filled_in_before_the_comment() {
        let gate = Question::gate(&json!({"form": {"type": "object"}}), None);
        check(gate, &["y", "{no", "{\"n\": 1}", ""], "; this is not JSON; ; true None Some(Object {\"n\": Number(1)})");
    }

    #[test]
    fn a_call_is_delivered_or_postponed() {
        check(Question::new(Asks::Call), &["{", "{\"paid\": true}"], "this is not JSON; deliver {\"paid\":true}");
        check(Question::new(Asks::Call), &[""], "later");
    }

    #[test]
    fn a_call_that_may_have_happened_is_settled() {
        let verdict = || Question::new(Asks::Verdict);
        check(verdict(), &["h", ""], "; Happened { body: Null }");
        check(verdict(), &["a"], "RunAgain");
        check(verdict(), &["x", "f"], "please answer with h, a, f or l; Fail");
    }
}
