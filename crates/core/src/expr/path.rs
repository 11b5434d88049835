//! Paths, and the trait that resolves them.

use super::{Span, Val};
use serde_json::Value;
use std::fmt;

/// A dotted name in an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    pub span: Span,
    /// As written: `tasks`, `charge`, `body`, `items`, `[0]`, `id`. Never empty; the first is a key.
    pub segments: Vec<Segment>,
    /// What the first segments refer to.
    pub var: Var,
    /// Index of the first segment that `var` does not cover.
    pub rest: usize,
}

impl Path {
    pub(super) fn unbound(segments: Vec<Segment>, span: Span) -> Path {
        Path { span, segments, var: Var::Unbound, rest: 0 }
    }

    pub fn bind(&mut self, var: Var, rest: usize) {
        self.var = var;
        self.rest = rest.min(self.segments.len());
    }

    /// The segments that remain to be followed from what `var` refers to.
    pub fn rest(&self) -> &[Segment] {
        self.segments.get(self.rest..).unwrap_or_default()
    }

    /// Whether the first name is `root`.
    pub fn begins_with(&self, root: &str) -> bool {
        self.key(0) == Some(root)
    }

    /// The segment at `n`, if it is a key.
    pub fn key(&self, n: usize) -> Option<&str> {
        match self.segments.get(n) {
            Some(Segment::Key(key)) => Some(key),
            Some(Segment::Index(_)) | None => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Segment {
    Key(Box<str>),
    Index(u32),
}

/// Displays segments as they would be written: `body.items[0]["odd name"]`.
pub struct Dotted<'p>(pub &'p [Segment]);

impl fmt::Display for Dotted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) if !super::lex::is_segment(key) => write!(f, "[{}]", Value::from(&**key))?,
                Segment::Key(key) if n == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Dotted(&self.segments).fmt(f)
    }
}

/// A step's index in its graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepIx(pub u32);

/// What the first segments of a bound path refer to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Var {
    Unbound,
    /// `{body, headers, query}`.
    Trigger,
    Input,
    Step(StepIx),
    /// One context variable, by number.
    Ctx(u32),
    CtxAll,
    /// The result that a branch tests.
    Result,
    WaitUrl(StepIx),
    /// The item of an enclosing `for_each`, by scope number.
    Item(u32),
    /// The position of that item.
    Index(u32),
    RunId,
    /// The time of the decision that the expression is evaluated for.
    Now,
    /// The values computed when the run started.
    Vars,
    Secret,
}

/// Resolves bound paths to data.
pub trait Names {
    /// Follows `path.rest()` from what `path.var` refers to; see [`walk`].
    fn find<'a>(&'a self, path: &Path) -> Found<'a>;

    /// Counts bytes that an evaluation reads or copies. Evaluation stays cheap to bound without a clock.
    fn spend(&self, _bytes: usize) {}
}

pub enum Found<'a> {
    Value(Val<'a>),
    Nothing,
    /// The body of `step` was truncated; `field` is the path that was read ([`Dotted`]).
    Truncated {
        step: &'a str,
        field: String,
    },
    /// A secret, named by the segment after `secrets`. Only a template can use it.
    Secret,
}

impl<'a> From<Option<&'a Value>> for Found<'a> {
    fn from(value: Option<&'a Value>) -> Found<'a> {
        value.map_or(Found::Nothing, |value| Found::Value(Val::Json(value)))
    }
}

/// Follows `rest` into `value`. A numeric key also finds a list item (`items.0`).
pub fn walk<'a>(value: &'a Value, rest: &[Segment]) -> Option<&'a Value> {
    rest.iter().try_fold(value, |value, segment| match (value, segment) {
        (Value::Object(map), Segment::Key(key)) => map.get(&**key),
        (Value::Array(list), Segment::Index(index)) => list.get(*index as usize),
        (Value::Array(list), Segment::Key(key)) => list.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Expr, Grammar};
    use serde_json::json;

    fn check(path: &str, expected: Option<Value>) {
        let data = json!({"body": {"items": [{"id": 7}, null], "odd name": {"0": "zero"}, "x-id": true}});
        let expr = Expr::parse(path, Grammar::Standard).unwrap();
        assert_eq!(walk(&data, &expr.as_path().unwrap().segments).cloned(), expected, "{path}");
    }

    #[test]
    fn a_path_leads_through_objects_and_lists_or_nowhere() {
        check("body.items[0].id", Some(json!(7)));
        check("body.items.0.id", Some(json!(7)));
        check("body.items[1]", Some(Value::Null));
        check("body['odd name'][\"0\"]", Some(json!("zero")));
        check("body.x-id", Some(json!(true)));
        check("body.items[2]", None);
        check("body.items[1].id", None);
        check("body.items.first", None);
        check("body.items.-1", None);
        check("body.x-id[0]", None);
        check("nobody", None);
    }

    #[test]
    fn a_printed_path_parses_back_to_itself() {
        let check = |source: &str, expected: &str| {
            let expr = Expr::parse(source, Grammar::Standard).unwrap();
            let printed = expr.as_path().unwrap().to_string();
            assert_eq!(printed, expected);
            assert_eq!(Expr::parse(&printed, Grammar::Standard).unwrap().as_path().unwrap().segments, {
                expr.as_path().unwrap().segments.clone()
            });
        };
        check("tasks['charge'].body", "tasks.charge.body");
        check("tasks[ \"odd \\\"name\" ][3]", "tasks[\"odd \\\"name\"][3]");
        check("trigger.body.2fa.0", "trigger.body.2fa.0");
    }
}
