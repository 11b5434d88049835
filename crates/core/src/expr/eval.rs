//! Evaluates a parsed expression. The recursion is bounded by the parser ([`super::MAX_DEPTH`]).

use super::decimal::Operation;
use super::functions::{CallError, MAX_ARGUMENTS};
use super::number::{self, Num};
use super::value::View;
use super::{Comparison, Expr, Found, List, Literal, MAX_WORK, Missing, Names, Node, NodeIx, Path, Span, Val};
use std::cell::Cell;
use std::cmp::Ordering;

/// How to treat a path that leads nowhere, and a call without a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    Null,
    Error,
    /// Flow templates: an error, except that an unknown key of the input is an empty string.
    EmptyInput,
    /// Decisions: an error, and so is `<` between values that have no order.
    Refuse,
}

pub(super) struct Eval<'a> {
    pub expr: &'a Expr,
    pub names: &'a dyn Names,
    /// Bytes read and produced so far.
    pub work: Cell<usize>,
}

impl<'a> Eval<'a> {
    pub fn node(&self, ix: NodeIx, absent: Absent) -> Result<Val<'a>, Missing> {
        let bool = match self.expr.node(ix) {
            Node::Literal(literal) => return Ok(literal.value()),
            Node::Path(path) => return self.path(path, absent),
            Node::Default(list) => return self.first_present(*list, absent),
            Node::Call { .. } => return self.call(ix, absent),
            Node::Calculate { operation, left, right, span } => {
                let (left, right) = (self.node(*left, absent)?, self.node(*right, absent)?);
                return self.calculated(*operation, [left, right], *span, absent);
            }
            Node::Negate { of, span } => {
                let of = self.node(*of, absent)?;
                return self.calculated(Operation::Subtract, [Val::Int(0), of], *span, absent);
            }
            Node::Not(of) => !self.node(*of, absent)?.is_true(),
            Node::Compare(comparison, left, right) => {
                let (left, right) = (self.node(*left, absent)?, self.node(*right, absent)?);
                self.spend(left.cost().min(right.cost()))?;
                if absent == Absent::Refuse {
                    comparison.check_order(&left, &right)?;
                }
                comparison.holds(&left, &right)
            }
            Node::SameText { path, text, negated } => {
                same_text(&self.node(*path, absent)?, text.as_deref()) != *negated
            }
            Node::All(list) => self.any_is(false, *list, absent)?.is_none(),
            Node::Any(list) => self.any_is(true, *list, absent)?.is_some(),
        };
        Ok(Val::Bool(bool))
    }

    pub fn can_hold(&self, ix: NodeIx, is_known: &dyn Fn(&Path) -> bool) -> bool {
        match self.expr.node(ix) {
            Node::All(list) => self.expr.operands(*list).iter().all(|ix| self.can_hold(*ix, is_known)),
            Node::Any(list) => self.expr.operands(*list).iter().any(|ix| self.can_hold(*ix, is_known)),
            _ if self.is_known(ix, is_known) => self.node(ix, Absent::Null).is_ok_and(|value| value.is_true()),
            _ => true,
        }
    }

    fn is_known(&self, ix: NodeIx, is_known: &dyn Fn(&Path) -> bool) -> bool {
        match self.expr.node(ix) {
            Node::Literal(_) => true,
            Node::Path(path) => is_known(path),
            Node::Not(of) | Node::Negate { of, .. } => self.is_known(*of, is_known),
            Node::Compare(_, left, right) | Node::Calculate { left, right, .. } => {
                self.is_known(*left, is_known) && self.is_known(*right, is_known)
            }
            Node::SameText { path, .. } => self.is_known(*path, is_known),
            Node::Default(list) | Node::All(list) | Node::Any(list) | Node::Call { list, .. } => {
                self.expr.operands(*list).iter().all(|ix| self.is_known(*ix, is_known))
            }
        }
    }

    fn path(&self, path: &'a Path, absent: Absent) -> Result<Val<'a>, Missing> {
        let written = || self.expr.text(path.span).to_owned();
        match self.names.find(path) {
            Found::Value(value) => Ok(value),
            Found::Nothing => match absent {
                Absent::Null => Ok(Val::Null),
                Absent::EmptyInput if path.begins_with("input") => Ok(Val::Str("")),
                Absent::Error | Absent::EmptyInput | Absent::Refuse => {
                    Err(Missing::Path { path: written(), at: path.span })
                }
            },
            Found::Truncated { step, field } => Err(Missing::Truncated { step: step.to_owned(), field }),
            Found::Secret => Err(Missing::Secret { path: written(), at: path.span }),
        }
    }

    /// Evaluates all alternatives but the last as in a condition: `??` exists to handle absent values.
    fn first_present(&self, list: List, absent: Absent) -> Result<Val<'a>, Missing> {
        let Some((last, others)) = self.expr.operands(list).split_last() else { return Ok(Val::Null) };
        for ix in others {
            let value = self.node(*ix, Absent::Null)?;
            if !value.is_null() {
                return Ok(value);
            }
        }
        self.node(*last, absent)
    }

    fn any_is(&self, wanted: bool, list: List, absent: Absent) -> Result<Option<NodeIx>, Missing> {
        for ix in self.expr.operands(list) {
            if self.node(*ix, absent)?.is_true() == wanted {
                return Ok(Some(*ix));
            }
        }
        Ok(None)
    }

    fn call(&self, ix: NodeIx, absent: Absent) -> Result<Val<'a>, Missing> {
        let Node::Call { function, list, span } = self.expr.node(ix) else { return Ok(Val::Null) };
        let inside = if *function == super::Function::Exists { Absent::Null } else { absent };
        let mut arguments = [const { Val::Null }; MAX_ARGUMENTS];
        let operands = self.expr.operands(*list);
        for (argument, ix) in arguments.iter_mut().zip(operands) {
            *argument = self.node(*ix, inside)?;
            self.spend(function.cost(argument))?;
        }
        match (function.call(&mut arguments[..operands.len()]), absent) {
            (Ok(value), _) => {
                if let Val::Owned(value) = &value {
                    self.work.set(self.work.get() + crate::value::weight(value));
                }
                Ok(value)
            }
            (Err(_), Absent::Null) => Ok(Val::Null),
            (Err(error), Absent::Error | Absent::EmptyInput | Absent::Refuse) => Err(error.at(*function, *span)),
        }
    }

    /// Counts the bytes that are read. Too many are an error even where other errors are null.
    fn spend(&self, bytes: usize) -> Result<(), Missing> {
        self.names.spend(bytes);
        self.work.set(self.work.get() + bytes);
        if self.work.get() > MAX_WORK { Err(Missing::TooLarge { limit: "256 MB of work" }) } else { Ok(()) }
    }

    fn calculated(
        &self,
        operation: Operation,
        operands: [Val<'a>; 2],
        span: Span,
        absent: Absent,
    ) -> Result<Val<'a>, Missing> {
        let error = match calculate(operation, &operands) {
            Ok(value) => return Ok(value),
            Err(_) if absent == Absent::Null => return Ok(Val::Null),
            Err(error) => error,
        };
        Err(match error {
            CallError::Type { needs, got } => {
                let written = self.expr.text(span).to_owned();
                Missing::Calculation { written, sign: operation.sign(), needs, got, at: span }
            }
            CallError::Exceeds(limit) => Missing::TooLarge { limit },
            CallError::TooLarge => Missing::TooLarge { limit: "4 MB of text" },
        })
    }
}

fn calculate<'a>(operation: Operation, operands: &[Val<'a>; 2]) -> Result<Val<'a>, CallError> {
    let number = |operand: &Val<'_>| match operand.view() {
        View::Number(number) => Ok(number),
        other => Err(CallError::Type { needs: "numbers", got: other.kind() }),
    };
    let (left, right) = (number(&operands[0])?, number(&operands[1])?);
    operation.of(left, right).map(Val::number).map_err(CallError::from)
}

impl Literal {
    fn value(&self) -> Val<'_> {
        match self {
            Literal::Null => Val::Null,
            Literal::Bool(bool) => Val::Bool(*bool),
            Literal::Number(number, _) => Val::number(number.clone()),
            Literal::Text(text) => Val::Str(text),
        }
    }
}

impl Comparison {
    /// Fails for `<` and its like if the values have no order.
    fn check_order(self, left: &Val<'_>, right: &Val<'_>) -> Result<(), Missing> {
        let sign = match self {
            Comparison::Equal | Comparison::NotEqual => return Ok(()),
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        };
        let (left, right) = (left.view(), right.view());
        if left.order(right).is_some() {
            return Ok(());
        }
        let got = if matches!(left, View::Number(_) | View::Text(_)) { right.kind() } else { left.kind() };
        Err(Missing::Type { function: sign, needs: "two numbers or two strings", got, at: Span::default() })
    }

    fn holds(self, left: &Val<'_>, right: &Val<'_>) -> bool {
        let order = |accepts: fn(Ordering) -> bool| left.view().order(right.view()).is_some_and(accepts);
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => order(Ordering::is_lt),
            Comparison::LessOrEqual => order(Ordering::is_le),
            Comparison::Greater => order(Ordering::is_gt),
            Comparison::GreaterOrEqual => order(Ordering::is_ge),
        }
    }
}

/// Flow's comparison of a result with a literal. Numbers also compare by value, so that `result == 1.0` is not stricter
/// than in other dialects.
fn same_text(result: &Val<'_>, literal: Option<&str>) -> bool {
    let is_nil = matches!(result.view(), View::Null | View::Text("" | "nil"));
    let Some(literal) = literal else { return is_nil };
    match result.view() {
        View::Text(text) => text == literal,
        View::Bool(bool) => literal == if bool { "true" } else { "false" },
        View::Number(number) => {
            number::parse(literal).is_some_and(|other| number.order(Num::of(&other)) == Ordering::Equal)
        }
        View::Null => false,
        View::List(_) | View::Object(_) => result.text().is_some_and(|text| text == literal),
    }
}
