//! Conditions of policies: `when`, an expression over the arguments of a call, its caller, the time and its workflow.
//!
//! A condition is checked when its policy is set. Evaluated, it decides with certainty or fails: a missing argument or
//! one of another type is an error and not false, so that no caller evades a policy by how a call is written. What an
//! error means is up to [`super::policies`].
//!
//! Not here: the language itself (`core::expr`).

use super::policies::Subject;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use stepwell_core::expr::{Dotted, Expr, Found, Grammar, Names, Path, walk};
use stepwell_core::nearest::nearest;
use stepwell_core::time::Time;
use url::Url;

/// The names of conditions, with their fields. The fields of `args` are those of the call.
const NAMES: [(&str, &[&str]); 8] = [
    ("args", &[]),
    ("caller", &["user", "key", "agent"]),
    ("time", &["now"]),
    ("workflow", &[]),
    ("reviewed", &[]),
    ("tool", &[]),
    ("host", &[]),
    ("connection", &[]),
];
/// What is known of a call without its caller.
const OF_CALL: [&str; 4] = ["args", "tool", "host", "connection"];

#[derive(Clone, Debug)]
pub struct Condition(Expr);

impl Condition {
    /// Parses a condition and checks its names.
    pub fn parse(source: &str) -> Result<Condition, String> {
        let expr = Expr::parse(source, Grammar::Standard).map_err(|error| error.to_string())?;
        expr.paths().try_for_each(check_name)?;
        Ok(Condition(expr))
    }

    /// Whether a call meets it. The error says why that cannot be decided, without the values of the call.
    pub fn decides(&self, call: &CallFacts<'_>) -> Result<bool, String> {
        self.0.decides(call).map_err(|missing| missing.to_string())
    }

    /// Whether a call could meet it, if only the call is known and not its caller. True in case of doubt.
    pub fn could_hold(&self, call: &CallFacts<'_>) -> bool {
        let is_known = |path: &Path| path.key(0).is_some_and(|root| OF_CALL.contains(&root));
        !self.0.paths().all(is_known) || self.decides(call).unwrap_or(true)
    }
}

fn check_name(path: &Path) -> Result<(), String> {
    let root = path.key(0).unwrap_or_default();
    let Some((_, fields)) = NAMES.iter().find(|(name, _)| *name == root) else {
        let names = NAMES.map(|(name, _)| name);
        let near = nearest(root, names).map(|near| format!("; did you mean `{near}`?"));
        let known = || format!("; the names are {}", names.join(", "));
        return Err(format!("`{path}`: there is no `{root}` in a condition{}", near.unwrap_or_else(known)));
    };
    let rest = path.segments.get(1..).unwrap_or_default();
    match (root, rest) {
        ("args", _) | (_, []) => Ok(()),
        (_, [_]) if path.key(1).is_some_and(|field| fields.contains(&field)) => Ok(()),
        _ => {
            let near = nearest(path.key(1).unwrap_or_default(), fields.iter().copied());
            let near = near.map(|near| format!("; did you mean `{root}.{near}`?"));
            let known = || match fields {
                [] => format!("; write `{root}` alone"),
                fields => format!("; its fields are {}", fields.join(", ")),
            };
            Err(format!("`{root}` has no `{}`{}", Dotted(rest), near.unwrap_or_else(known)))
        }
    }
}

/// Who makes calls, and for which workflow.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Who {
    /// The user who started the run. `None` for notifications.
    pub user: Option<Arc<str>>,
    /// The key that the run was started or retried with; an agent's takes precedence.
    pub key: Option<Arc<str>>,
    pub agent: bool,
    pub workflow: Option<Arc<str>>,
    pub unreviewed: bool,
}

/// What a condition can read of a call.
pub struct CallFacts<'a> {
    args: Cow<'a, Value>,
    others: Value,
}

impl<'a> CallFacts<'a> {
    pub fn new(who: &Who, subjects: &[Subject], args: Cow<'a, Value>, now: Time) -> CallFacts<'a> {
        let mut others = Map::new();
        for kind in ["tool", "host", "connection"] {
            match subjects.iter().find(|subject| subject.kind == kind) {
                // A name in a secret that is not filled in cannot be compared.
                Some(subject) if subject.unknown => {}
                Some(subject) => drop(others.insert(kind.into(), json!(subject.name))),
                None => drop(others.insert(kind.into(), Value::Null)),
            }
        }
        others.insert("caller".into(), json!({"user": who.user, "key": who.key, "agent": who.agent}));
        others.insert("time".into(), json!({"now": now.to_string()}));
        others.insert("workflow".into(), json!(who.workflow));
        others.insert("reviewed".into(), json!(!who.unreviewed));
        CallFacts { args, others: Value::Object(others) }
    }
}

impl Names for CallFacts<'_> {
    fn find<'s>(&'s self, path: &Path) -> Found<'s> {
        match path.key(0) {
            Some("args") => walk(&self.args, path.segments.get(1..).unwrap_or_default()).into(),
            _ => walk(&self.others, &path.segments).into(),
        }
    }
}

/// The arguments of a call with this input, as they are sent: a tool's arguments, otherwise the whole input. A request
/// has the method and the URL that are used, however they were written.
pub fn args<'v>(kind: &str, input: &'v Value) -> Cow<'v, Value> {
    let tool = if kind == "tool" { input["tool"].as_str().unwrap_or_default() } else { kind };
    let args = if kind == "tool" { input.get("args").unwrap_or(&Value::Null) } else { input };
    match (tool, args) {
        ("http" | "http_request", Value::Object(fields)) => {
            let mut fields = fields.clone();
            let method = match fields.get("method") {
                None | Some(Value::Null) => Some("POST".to_string()),
                Some(method) => method.as_str().map(|method| method.trim().to_ascii_uppercase()),
            };
            fields.extend(method.map(|method| ("method".to_string(), method.into())));
            let url = fields.get("url").and_then(Value::as_str).and_then(|url| Url::parse(url.trim()).ok());
            fields.extend(url.map(|url| ("url".to_string(), url.as_str().into())));
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(args),
    }
}

/// The arguments of a request in the middle of a call: of `fetch`, of a redirect, of a notification.
pub fn request_args(url: &Url, method: &str) -> Value {
    json!({"method": method, "url": url.as_str(), "host": url.host_str()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_with_an_unknown_name_is_refused_with_the_nearest_one() {
        let check = |source: &str, expected: &str| {
            assert_eq!(Condition::parse(source).err().unwrap_or_default(), expected, "{source}");
        };
        check("args.amount <= 500 && !caller.agent && workflow == 'refund' && reviewed", "");
        check("date(time.now, null, '%H', 'Europe/Berlin') >= '18' || host == tool || connection == null", "");
        check("arg.amount > 5", "`arg.amount`: there is no `arg` in a condition; did you mean `args`?");
        let names = "args, caller, time, workflow, reviewed, tool, host, connection";
        check("input.x", &format!("`input.x`: there is no `input` in a condition; the names are {names}"));
        check("caller.agnet", "`caller` has no `agnet`; did you mean `caller.agent`?");
        check("caller.password", "`caller` has no `password`; its fields are user, key, agent");
        check("caller.user.name", "`caller` has no `user.name`; did you mean `caller.user`?");
        check("workflow.name", "`workflow` has no `name`; write `workflow` alone");
        assert!(Condition::parse("args.amount >").unwrap_err().contains("expected"));
    }

    fn decides(source: &str, kind: &str, input: &Value) -> Result<bool, String> {
        let who = Who { user: Some("ann".into()), agent: true, workflow: Some("w".into()), ..Who::default() };
        let subjects = super::super::policies::subjects(kind, input);
        let facts = CallFacts::new(&who, &subjects, args(kind, input), Time(1_767_225_600_000));
        Condition::parse(source).unwrap().decides(&facts)
    }

    #[test]
    fn a_condition_reads_the_call_as_it_is_sent() {
        let tool = json!({"tool": "pay", "args": {"amount": 7, "to": {"id": "x"}}});
        for source in [
            "args.amount == 7 && args.to.id == 'x'",
            "tool == 'pay' && host == null && connection == null",
            "caller.user == 'ann' && caller.agent && caller.key == null",
            "workflow == 'w' && reviewed && time.now == '2026-01-01T00:00:00.000Z'",
        ] {
            assert_eq!(decides(source, "tool", &tool), Ok(true), "{source}");
        }
        let request = json!({"url": " HTTP://API.example.com:80/a/../b", "method": "delete"});
        let source = "args.method == 'DELETE' && args.url == 'http://api.example.com/b' && host == 'api.example.com'";
        assert_eq!(decides(source, "http", &request), Ok(true));
        assert_eq!(decides("args.method == 'POST'", "http", &json!({"url": "http://a.example"})), Ok(true));
        assert_eq!(decides("args.write", "query", &json!({"connection": "crm", "write": true})), Ok(true));
    }

    #[test]
    fn a_condition_that_cannot_be_decided_says_why_without_the_values() {
        let check = |source: &str, input: Value, expected: &str| {
            assert_eq!(decides(source, "tool", &input), Err(expected.to_string()), "{source}");
        };
        let text = json!({"tool": "pay", "args": {"amount": "s3cret"}});
        check("args.amount > 5", text, "`>` needs two numbers or two strings, but got a number");
        check("args.amount > 5", json!({"tool": "pay"}), "Failed to resolve {{args.amount}}");
        let hidden = json!({"tool": "http_request", "args": {"url": "{{secrets.HOOK}}"}});
        check("host == 'a.example'", hidden, "Failed to resolve {{host}}");
    }
}
