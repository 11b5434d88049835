//! Checks what is known of types when an expression is parsed: a calculation or call that can never have a result is a
//! fault of the definition, not of a run.

use super::decimal::Operation;
use super::functions::types::{self, Types};
use super::functions::{Function, literal_fault, number_fault};
use super::{Expr, Literal, Node, NodeIx, Span, SyntaxError};

/// The types a node may have. All, if they depend on the data.
fn types_of(expr: &Expr, ix: NodeIx) -> Types {
    match expr.node(ix) {
        Node::Literal(Literal::Null) => types::NULL,
        Node::Literal(Literal::Bool(_)) => types::BOOL,
        Node::Literal(Literal::Number(..)) | Node::Negate { .. } | Node::Calculate { .. } => types::NUMBER,
        Node::Literal(Literal::Text(_)) => types::TEXT,
        Node::Not(_) | Node::Compare(..) | Node::SameText { .. } | Node::All(_) | Node::Any(_) => types::BOOL,
        Node::Call { function, .. } => function.returns(),
        Node::Path(_) | Node::Default(_) => types::ANY,
    }
}

pub fn operands(expr: &Expr, operation: Operation, operands: [NodeIx; 2], at: Span) -> Result<(), SyntaxError> {
    let sign = operation.sign();
    let wrong = operands.into_iter().map(|ix| types_of(expr, ix)).find(|types| types & types::NUMBER == 0);
    if let Some(wrong) = wrong {
        let message = format!("`{sign}` needs numbers, but got {}", types::kind(wrong));
        let error = SyntaxError::new(at, message);
        return Err(match (operation, wrong) {
            (Operation::Add, types::TEXT) => error.hint("write text side by side in a template: {{a}}{{b}}"),
            (_, types::TEXT) => error.hint("number(x) reads a number from a string"),
            _ => error,
        });
    }
    let divides = matches!(operation, Operation::Divide | Operation::Remainder);
    match expr.node(operands[1]) {
        Node::Literal(Literal::Number(number, _)) if divides && number.as_f64() == Some(0.0) => {
            Err(SyntaxError::new(at, format!("`{sign}` needs a divisor other than 0, but got 0")))
        }
        _ => Ok(()),
    }
}

pub fn arguments(expr: &Expr, function: Function, arguments: &[NodeIx], at: Span) -> Result<(), SyntaxError> {
    let name = function.name();
    if let Some((needs, got)) = types::mismatch(function, arguments.iter().map(|ix| types_of(expr, *ix))) {
        return Err(SyntaxError::new(at, format!("`{name}` needs {needs}, but got {got}")));
    }
    for (position, ix) in arguments.iter().enumerate() {
        let fault = match expr.node(*ix) {
            Node::Literal(Literal::Text(text)) => literal_fault(function, position, text),
            Node::Literal(Literal::Number(number, ..)) => number_fault(function, position, number),
            _ => None,
        };
        if let Some((message, hint)) = fault {
            let error = SyntaxError::new(at, message);
            return Err(match hint {
                Some(hint) => error.hint(hint),
                None => error,
            });
        }
    }
    Ok(())
}
