//! The expression language of conditions and templates: small, pure and total.
//!
//! ```text
//! tasks.charge.status_code == 200 && !(tasks.charge.body.items[0].sku ?? "none" == 'none')
//! ```
//!
//! * **Literals**: numbers, `'string'` or `"string"` with JSON's escapes, `true`, `false`, `null` (or `nil`).
//! * **Paths**: `tasks.payment-result.body.items[0].id`, `trigger.headers["x-id"]`. Names may contain hyphens, so `-`
//!   subtracts only with a space on each side. On a list, `.0` means `[0]`.
//! * **Operators**, tightest first: `!` and the sign `-`, then `??`, then `* / %`, then `+ -`, then `== != < <= > >=`
//!   (which do not chain), then `&&`, then `||`. `??` binds so tightly that `x ?? 0 > 3` and `x ?? 0 + 1` mean what
//!   their author wants: `(x ?? 0) > 3` and `(x ?? 0) + 1`. Arithmetic is decimal and exact; see [`decimal`].
//!   `&&` and `||` short-circuit and return `true` or `false`, never an operand.
//! * **Functions**: see [`functions`].
//!
//! Equality is deep and by value: `1 == 1.0`, and values of different types are never equal. Numbers compare exactly,
//! even integers too large for a float. Only numbers with numbers and strings with strings (by code point) are ordered;
//! any other `<` is false. Only `null`, `false`, `""` and `0` are falsy: an empty list is truthy.
//!
//! Expressions have three evaluation modes. In a template ([`Expr::value`]) a path that leads nowhere and a function
//! argument of the wrong type are errors; in a condition ([`Expr::holds`]) both are null. In a decision
//! ([`Expr::decides`]) both are errors, and so is the order of values that have none. The left side of `??` and the
//! argument of `exists` are always evaluated as in a condition, and both treat null as absent.
//!
//! Not here: which names exist and what they mean. The graph builder binds each [`Path`] to a [`Var`] when a workflow
//! is defined and rejects unknown names; the run's state resolves bound paths through [`Names`].

mod check;
mod compare;
mod decimal;
mod error;
mod eval;
pub mod functions;
mod lex;
mod number;
mod parse;
mod path;
mod percent;
#[cfg(test)]
pub(crate) mod tests;
mod value;

pub use compare::{Operator, Pattern, PatternError, test};
pub use error::{Missing, Span, SyntaxError};
pub use path::{Dotted, Found, Names, Path, Segment, StepIx, Var, walk};
pub(crate) use percent::Percent;
pub use value::Val;
pub(crate) use value::{Bounded, MAX_TEXT};

use decimal::Operation;
use eval::{Absent, Eval};
use functions::Function;
use serde_json::Number;
use std::cell::Cell;

/// Bytes of one expression.
pub const MAX_SOURCE: usize = 4096;
/// Nesting of parentheses, calls and `!`. Bounds the recursion of both parser and evaluator.
pub const MAX_DEPTH: usize = 32;
/// Literals, paths, operators and calls in one expression.
pub const MAX_NODES: usize = 256;
/// Bytes that the evaluation of one expression may read and produce: a fraction of a second.
pub(crate) const MAX_WORK: usize = 256 * 1024 * 1024;

/// A parsed expression. Does not change after binding; evaluation allocates only for a new string or list.
#[derive(Clone, Debug)]
pub struct Expr {
    source: Box<str>,
    grammar: Grammar,
    nodes: Vec<Node>,
    /// Operands of nodes with a variable number of operands.
    operands: Vec<NodeIx>,
    root: NodeIx,
}

/// The grammar of an expression, chosen by the dialect of its workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    Standard,
    /// The grammar of flows: `result == literal` (and `!=`) compares as text, so `true` matches `"true"`, an unquoted
    /// word on the other side is a string, and null, `""` and `"nil"` are all nil. In a template, a path that begins
    /// with `input` and leads nowhere is an empty string.
    Flow,
}

impl Expr {
    pub fn parse(source: &str, grammar: Grammar) -> Result<Expr, SyntaxError> {
        parse::parse(source, grammar)
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.nodes.iter().filter_map(|node| if let Node::Path(path) = node { Some(path) } else { None })
    }

    /// The paths, for binding.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.nodes.iter_mut().filter_map(|node| if let Node::Path(path) = node { Some(path) } else { None })
    }

    /// The path, if the expression is just a path.
    pub fn as_path(&self) -> Option<&Path> {
        if let Node::Path(path) = self.node(self.root) { Some(path) } else { None }
    }

    /// Whether the whole expression is a call of this function.
    pub fn is_call(&self, name: &str) -> bool {
        matches!(self.node(self.root), Node::Call { function, .. } if function.name() == name)
    }

    /// Evaluates for a template: a missing path or a wrong type is an error unless `??` catches it.
    pub fn value<'a>(&'a self, names: &'a dyn Names) -> Result<Val<'a>, Missing> {
        let absent = match self.grammar {
            Grammar::Standard => Absent::Error,
            Grammar::Flow => Absent::EmptyInput,
        };
        Eval { expr: self, names, work: Cell::new(0) }.node(self.root, absent)
    }

    /// Evaluates for a condition: missing paths and wrong types are null. Fails only for a truncated body or a secret.
    pub fn read<'a>(&'a self, names: &'a dyn Names) -> Result<Val<'a>, Missing> {
        Eval { expr: self, names, work: Cell::new(0) }.node(self.root, Absent::Null)
    }

    /// Whether the value of [`Expr::read`] is truthy.
    pub fn holds(&self, names: &dyn Names) -> Result<bool, Missing> {
        Ok(self.read(names)?.is_true())
    }

    /// Evaluates for a decision that has to be certain. Other than in a condition, missing paths and wrong types are
    /// errors, and so is `<` between values that have no order.
    pub fn decides(&self, names: &dyn Names) -> Result<bool, Missing> {
        Ok(Eval { expr: self, names, work: Cell::new(0) }.node(self.root, Absent::Refuse)?.is_true())
    }

    /// Whether a condition may hold, given that only some paths are known. True in case of doubt.
    pub fn can_hold(&self, names: &dyn Names, is_known: &dyn Fn(&Path) -> bool) -> bool {
        Eval { expr: self, names, work: Cell::new(0) }.can_hold(self.root, is_known)
    }

    fn node(&self, ix: NodeIx) -> &Node {
        &self.nodes[ix.0 as usize]
    }

    fn operands(&self, list: List) -> &[NodeIx] {
        &self.operands[list.start as usize..][..list.len as usize]
    }

    fn text(&self, span: Span) -> &str {
        self.source.get(span.range()).unwrap_or_default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NodeIx(u32);

/// A range of [`Expr::operands`].
#[derive(Clone, Copy, Debug)]
struct List {
    start: u32,
    len: u32,
}

/// A chain (`a && b && c`) is one node, so that only what [`MAX_DEPTH`] counts adds depth.
#[derive(Clone, Debug)]
enum Node {
    Literal(Literal),
    Path(Path),
    Not(NodeIx),
    Negate {
        of: NodeIx,
        span: Span,
    },
    Calculate {
        operation: Operation,
        left: NodeIx,
        right: NodeIx,
        span: Span,
    },
    Compare(Comparison, NodeIx, NodeIx),
    /// Flow's `result == literal`; `None` is nil.
    SameText {
        path: NodeIx,
        text: Option<Box<str>>,
        negated: bool,
    },
    Default(List),
    All(List),
    Any(List),
    Call {
        function: Function,
        list: List,
        span: Span,
    },
}

#[derive(Clone, Debug)]
enum Literal {
    Null,
    Bool(bool),
    /// With its span, because flow compares a number as written.
    Number(Number, Span),
    Text(Box<str>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
