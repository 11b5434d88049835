//! The expression language of conditions and templates: small, pure and total.
//!
//! ```text
//! tasks.charge.status_code == 200 && !(tasks.charge.body.items[0].sku ?? "none" == 'none')
//! ```
//!
//! * **Literals**: numbers, `'text'` or `"text"` with JSON's escapes, `true`, `false`, `null` (or `nil`).
//! * **Paths**: `tasks.payment-result.body.items[0].id`, `trigger.headers["x-id"]`. Names may hold hyphens, so there
//!   is no subtraction, nor any other arithmetic. On a list, `.0` reads as `[0]`.
//! * **Operators**, tightest first: `!`, then `??`, then `== != < <= > >=` (which do not chain), then `&&`, then `||`.
//!   `??` binds tighter than a comparison so that `x ?? 0 > 3` means what its author wants: `(x ?? 0) > 3`.
//!   `&&` and `||` look no further than they must and give `true` or `false`, never an operand.
//! * **Functions**: see [`functions`].
//!
//! Equality is by value and deep: `1 == 1.0`, and no two values of unlike types are equal. Numbers compare exactly,
//! also integers too large for a float. Only numbers with numbers and texts with texts (by code point) have an order;
//! any other `<` is false. As a truth value only `null`, `false`, `""` and `0` are false: an empty list is something.
//!
//! One expression is read in two ways. In a template ([`Expr::value`]) a path that leads nowhere and a function given
//! the wrong type are errors that name them; in a condition ([`Expr::holds`]) both are null. The left side of `??`
//! and the argument of `exists` are always read as in a condition, and both take null for nothing.
//!
//! Not here: which names exist and what they mean. The graph builder binds each [`Path`] to a [`Var`] when a workflow
//! is defined, and refuses those it does not know; the run's state answers for bound paths through [`Names`].

mod compare;
mod error;
mod eval;
pub mod functions;
mod lex;
mod number;
mod parse;
mod path;
#[cfg(test)]
pub(crate) mod tests;
mod value;

pub use compare::{Operator, Pattern, PatternError, test};
pub use error::{Missing, Span, SyntaxError};
pub use path::{Dotted, Found, Names, Path, Segment, StepIx, Var, walk};
pub use value::Val;
pub(crate) use value::{Bounded, MAX_TEXT};

use eval::{Absent, Eval};
use functions::Function;
use serde_json::Number;

/// Bytes of one expression.
pub const MAX_SOURCE: usize = 4096;
/// Parentheses, calls and `!` inside each other. Bounds the recursion of parser and evaluator alike.
pub const MAX_DEPTH: usize = 32;
/// Literals, paths, operators and calls in one expression.
pub const MAX_NODES: usize = 256;

/// A parsed expression. Does not change after binding; evaluating allocates only for a new text or list.
#[derive(Clone, Debug)]
pub struct Expr {
    source: Box<str>,
    grammar: Grammar,
    nodes: Vec<Node>,
    /// Operands of the nodes that have any number of them.
    operands: Vec<NodeIx>,
    root: NodeIx,
}

/// Which dialect an expression stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    Standard,
    /// As flows are written: `result == literal` (and `!=`) compares as text, so `true` matches
    /// `"true"`, an unquoted word on the other side is a text, and null, `""` and `"nil"` are all nil. In a template,
    /// a path that begins with `input` and leads nowhere is an empty text.
    Flow,
}

impl Expr {
    pub fn parse(source: &str, grammar: Grammar) -> Result<Expr, SyntaxError> {
        parse::parse(source, grammar)
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.nodes.iter().filter_map(|node| if let Node::Path(path) = node { Some(path) } else { None })
    }

    /// For binding.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.nodes.iter_mut().filter_map(|node| if let Node::Path(path) = node { Some(path) } else { None })
    }

    /// The path, if the expression is nothing else.
    pub fn as_path(&self) -> Option<&Path> {
        if let Node::Path(path) = self.node(self.root) { Some(path) } else { None }
    }

    /// For templates: a missing path or a wrong type is an error unless `??` catches it.
    pub fn value<'a>(&'a self, names: &'a dyn Names) -> Result<Val<'a>, Missing> {
        let absent = match self.grammar {
            Grammar::Standard => Absent::Error,
            Grammar::Flow => Absent::EmptyInput,
        };
        Eval { expr: self, names }.node(self.root, absent)
    }

    /// For conditions: missing paths and wrong types are null. Fails only for a truncated body or a secret.
    pub fn read<'a>(&'a self, names: &'a dyn Names) -> Result<Val<'a>, Missing> {
        Eval { expr: self, names }.node(self.root, Absent::Null)
    }

    /// Whether what [`Expr::read`] gives counts as true.
    pub fn holds(&self, names: &dyn Names) -> Result<bool, Missing> {
        Ok(self.read(names)?.is_true())
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

/// A stretch of [`Expr::operands`].
#[derive(Clone, Copy, Debug)]
struct List {
    start: u32,
    len: u32,
}

/// Chains (`a && b && c`) are one node, so that depth comes only from what [`MAX_DEPTH`] counts.
#[derive(Clone, Debug)]
enum Node {
    Literal(Literal),
    Path(Path),
    Not(NodeIx),
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
    /// With its place, because flow compares a number as it was written.
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
