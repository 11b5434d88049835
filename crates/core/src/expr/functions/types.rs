//! The types that functions take and return, for the check when an expression is parsed and for that of each call.
//!
//! Not here: the functions that were there before this table. They check their own arguments, and only when called,
//! because expressions that are stored must stay valid.

use super::{CallError, Function};
use crate::expr::Val;
use crate::expr::value::View;

/// A set of types, one bit each.
pub type Types = u8;

pub const NULL: Types = 1;
pub const BOOL: Types = 2;
pub const NUMBER: Types = 4;
pub const TEXT: Types = 8;
pub const LIST: Types = 16;
pub const OBJECT: Types = 32;
pub const ANY: Types = 63;

impl Function {
    /// What each argument may be; the last one stands for all that follow.
    pub fn takes(self) -> Option<&'static [Types]> {
        Some(match self {
            Function::Split => &[TEXT, TEXT],
            Function::Replace => &[TEXT, TEXT, TEXT],
            Function::Slice => &[TEXT | LIST, NUMBER, NUMBER | NULL],
            Function::Sum | Function::Unique => &[LIST],
            Function::Sort => &[LIST, TEXT | NULL],
            Function::Values | Function::Merge => &[OBJECT],
            Function::Round | Function::Floor | Function::Ceil | Function::Abs => &[NUMBER],
            Function::Base64 | Function::Sha256 => &[ANY],
            Function::Date => &[TEXT | NUMBER, TEXT | NULL],
            Function::Len
            | Function::Contains
            | Function::StartsWith
            | Function::EndsWith
            | Function::Lower
            | Function::Upper
            | Function::Trim
            | Function::Exists
            | Function::String
            | Function::Number
            | Function::Json
            | Function::Join
            | Function::Min
            | Function::Max
            | Function::Keys
            | Function::First
            | Function::Last
            | Function::UrlEncode
            | Function::Raw => return None,
        })
    }

    /// What a call that succeeds may return.
    pub fn returns(self) -> Types {
        match self {
            Function::Len
            | Function::Number
            | Function::Min
            | Function::Max
            | Function::Sum
            | Function::Round
            | Function::Floor
            | Function::Ceil
            | Function::Abs => NUMBER,
            Function::Contains | Function::StartsWith | Function::EndsWith | Function::Exists => BOOL,
            Function::Lower
            | Function::Upper
            | Function::Trim
            | Function::String
            | Function::Json
            | Function::Join
            | Function::UrlEncode
            | Function::Replace
            | Function::Base64
            | Function::Sha256
            | Function::Date => TEXT,
            Function::Keys | Function::Split | Function::Sort | Function::Unique | Function::Values => LIST,
            Function::Slice => TEXT | LIST,
            Function::Merge => OBJECT,
            Function::First | Function::Last | Function::Raw => ANY,
        }
    }
}

pub fn of(view: View<'_>) -> Types {
    match view {
        View::Null => NULL,
        View::Bool(_) => BOOL,
        View::Number(_) => NUMBER,
        View::Text(_) => TEXT,
        View::List(_) => LIST,
        View::Object(_) => OBJECT,
    }
}

/// A type as messages name it.
pub fn kind(types: Types) -> &'static str {
    match types {
        NULL => "null",
        BOOL => "a boolean",
        NUMBER => "a number",
        TEXT => "a string",
        LIST => "a list",
        OBJECT => "an object",
        _ => "another type",
    }
}

/// What messages say a function needs.
fn needs(types: Types) -> &'static str {
    match types & !NULL {
        t if t == TEXT | LIST => "a string or a list",
        t if t == TEXT | NUMBER => "a time",
        single => kind(single),
    }
}

/// The first argument that cannot be of a type the function takes: what is needed, and what it is.
pub fn mismatch(function: Function, arguments: impl Iterator<Item = Types>) -> Option<(&'static str, &'static str)> {
    let takes = function.takes()?;
    let last = *takes.last()?;
    let expected = takes.iter().copied().chain(std::iter::repeat(last));
    expected.zip(arguments).find(|(takes, is)| takes & is == 0).map(|(takes, is)| (needs(takes), kind(is)))
}

pub fn check(function: Function, arguments: &[Val<'_>]) -> Result<(), CallError> {
    match mismatch(function, arguments.iter().map(|argument| of(argument.view()))) {
        Some((needs, got)) => Err(CallError::Type { needs, got }),
        None => Ok(()),
    }
}
