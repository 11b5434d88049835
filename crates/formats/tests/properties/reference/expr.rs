//! An independent evaluator of expressions and templates, written from docs/expressions.md.
//!
//! A missing value is `None`: null in a condition, an error in a template. Not here: secrets, URLs, limits, and name
//! resolution (the caller passes a lookup).

use super::{calculate, functions};
use serde_json::Value;
use std::cmp::Ordering;

/// Finds the value at a path such as `["tasks", "a", "body", "v"]`.
pub type Lookup<'a> = dyn Fn(&[String]) -> Option<Value> + 'a;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// What is missing is null.
    Condition,
    /// What is missing is an error.
    Template,
    /// The same, except that an unknown key of the input is an empty string.
    FlowTemplate,
}

/// Whether the condition is true.
pub fn holds(text: &str, lookup: &Lookup) -> bool {
    truth(&evaluate(text, Mode::Condition, lookup).expect("a condition has a value"))
}

/// `None` if something is missing in a template.
pub fn evaluate(text: &str, mode: Mode, lookup: &Lookup) -> Option<Value> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let tree = parser.or();
    assert!(parser.at == parser.tokens.len(), "the reference cannot read {text:?}");
    value(&tree, mode, lookup)
}

/// The value of a string that may contain `{{…}}`; `None` if one of them is missing.
pub fn render(text: &str, mode: Mode, lookup: &Lookup) -> Option<Value> {
    let mut rest = text;
    let mut out = String::new();
    while let Some(start) = rest.find("{{") {
        let end = start + rest[start..].find("}}").expect("a template that ends");
        let value = evaluate(&rest[start + 2..end], mode, lookup)?;
        if start == 0 && end + 2 == text.len() {
            return Some(value);
        }
        out.push_str(&rest[..start]);
        out.push_str(&as_text(&value));
        rest = &rest[end + 2..];
    }
    Some(Value::String(out + rest))
}

/// A flow condition: `result == literal` and `result != literal` compare as text, anything else is an ordinary
/// condition.
pub fn flow_holds(text: &str, result: &Value, lookup: &Lookup) -> bool {
    if let Some(rest) = text.trim().strip_prefix("result ") {
        let (operator, literal) = rest.split_at(2);
        let literal = literal.trim();
        let simple = literal.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"'".contains(c));
        if simple && (operator == "==" || operator == "!=") {
            let wanted = nil_or_text(literal.trim_matches(['"', '\'']));
            return (nil_or_text(&as_text(result)) == wanted) == (operator == "==");
        }
    }
    holds(text, lookup)
}

fn nil_or_text(text: &str) -> Option<String> {
    (!matches!(text, "" | "nil" | "null")).then(|| text.to_string())
}

/// A value inside text: a string as is, null as nothing, anything else as compact JSON.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Walks into objects and lists; `None` where there is nothing.
pub fn dig(value: &Value, path: &[String]) -> Option<Value> {
    let mut here = value;
    for key in path {
        here = match here {
            Value::Object(map) => map.get(key)?,
            Value::Array(list) => list.get(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(here.clone())
}

/// By value, deeply, whatever the notation of numbers and the order of keys.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, left): (&String, &Value)| right.get(key).is_some_and(|right| equal(left, right));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => left == right,
    }
}

/// The order of two values; different types have none.
pub fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Path(Vec<String>),
    Literal(Value),
    Sign(&'static str),
}

const SIGNS: [&str; 17] = ["==", "!=", "<=", ">=", "&&", "||", "??", "<", ">", "!", "(", ")", "+", "*", "/", "%", ","];

fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let ends_value = match found.last() {
            Some(Token::Sign(sign)) => *sign == ")",
            Some(_) => true,
            None => false,
        };
        let length;
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            length = sign.len();
            found.push(Token::Sign(sign));
        } else if first == '-' && (ends_value || !rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            length = 1;
            found.push(Token::Sign("-"));
        } else if first == '\'' || first == '"' {
            let end = rest[1..].find(first).expect("a string that ends");
            length = end + 2;
            found.push(Token::Literal(Value::String(rest[1..=end].to_string())));
        } else {
            length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.[]".contains(c)).unwrap_or(rest.len());
            assert!(length > 0, "the reference cannot read {text:?}");
            found.push(word(&rest[..length]));
        }
        rest = rest[length..].trim_start();
    }
    found
}

fn word(text: &str) -> Token {
    match text {
        "null" | "nil" => Token::Literal(Value::Null),
        _ => match serde_json::from_str::<Value>(text) {
            Ok(value) if !value.is_array() => Token::Literal(value),
            _ => Token::Path(text.replace('[', ".").replace(']', "").split('.').map(String::from).collect()),
        },
    }
}

enum Tree {
    Literal(Value),
    Path(Vec<String>),
    Not(Box<Tree>),
    Negative(Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Call(String, Vec<Tree>),
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(here)) if *here == sign);
        self.at += usize::from(found);
        found
    }

    /// Operators of one level, grouped from the left.
    fn level(&mut self, signs: &[&'static str], operand: fn(&mut Parser) -> Tree) -> Tree {
        let mut left = operand(self);
        while let Some(sign) = signs.iter().find(|sign| self.take(sign)) {
            left = Tree::Binary(sign, Box::new(left), Box::new(operand(self)));
        }
        left
    }

    fn or(&mut self) -> Tree {
        self.level(&["||"], Parser::and)
    }

    fn and(&mut self) -> Tree {
        self.level(&["&&"], Parser::comparison)
    }

    fn comparison(&mut self) -> Tree {
        self.level(&["==", "!=", "<=", ">=", "<", ">"], Parser::sum)
    }

    fn sum(&mut self) -> Tree {
        self.level(&["+", "-"], Parser::product)
    }

    fn product(&mut self) -> Tree {
        self.level(&["*", "/", "%"], Parser::default)
    }

    /// A chain of defaults: all but the last are read as in a condition, so it groups from the right.
    fn default(&mut self) -> Tree {
        let left = self.unary();
        if self.take("??") {
            return Tree::Binary("??", Box::new(left), Box::new(self.default()));
        }
        left
    }

    fn unary(&mut self) -> Tree {
        if self.take("!") {
            return Tree::Not(Box::new(self.unary()));
        }
        if self.take("-") {
            return Tree::Negative(Box::new(self.unary()));
        }
        if self.take("(") {
            let inner = self.or();
            assert!(self.take(")"), "a parenthesis that closes");
            return inner;
        }
        self.at += 1;
        match self.tokens[self.at - 1].clone() {
            Token::Path(path) if path.len() == 1 && self.take("(") => {
                let mut arguments = vec![self.or()];
                while self.take(",") {
                    arguments.push(self.or());
                }
                assert!(self.take(")"), "a call that closes");
                Tree::Call(path[0].clone(), arguments)
            }
            Token::Path(path) => match path[0].as_str() {
                "true" | "false" => Tree::Literal(Value::Bool(path[0] == "true")),
                _ => Tree::Path(path),
            },
            Token::Literal(value) => Tree::Literal(value),
            Token::Sign(sign) => panic!("the reference did not expect {sign:?}"),
        }
    }
}

fn value(tree: &Tree, mode: Mode, lookup: &Lookup) -> Option<Value> {
    let or_missing = |found: Option<Value>| match (found, mode) {
        (None, Mode::Condition) => Some(Value::Null),
        (found, _) => found,
    };
    match tree {
        Tree::Literal(value) => Some(value.clone()),
        Tree::Path(path) => match (lookup(path), mode) {
            (None, Mode::FlowTemplate) if path[0] == "input" => Some("".into()),
            (found, _) => or_missing(found),
        },
        Tree::Not(of) => Some(Value::Bool(!truth(&value(of, mode, lookup)?))),
        Tree::Negative(of) => {
            let of = value(of, mode, lookup)?;
            or_missing(calculate::calculate("-", &Value::from(0), &of))
        }
        Tree::Binary("??", left, right) => match value(left, Mode::Condition, lookup) {
            Some(Value::Null) | None => value(right, mode, lookup),
            found => found,
        },
        Tree::Binary("||", left, right) => match truth(&value(left, mode, lookup)?) {
            true => Some(true.into()),
            false => Some(truth(&value(right, mode, lookup)?).into()),
        },
        Tree::Binary("&&", left, right) => match truth(&value(left, mode, lookup)?) {
            true => Some(truth(&value(right, mode, lookup)?).into()),
            false => Some(false.into()),
        },
        Tree::Binary(sign, left, right) => {
            let (left, right) = (value(left, mode, lookup)?, value(right, mode, lookup)?);
            match sign {
                &("+" | "-" | "*" | "/" | "%") => or_missing(calculate::calculate(sign, &left, &right)),
                sign => Some(compare(&left, sign, &right).into()),
            }
        }
        Tree::Call(name, arguments) if name == "exists" => {
            let found = value(&arguments[0], Mode::Condition, lookup);
            Some(found.is_some_and(|value| !value.is_null()).into())
        }
        Tree::Call(name, arguments) => {
            let arguments: Option<Vec<Value>> = arguments.iter().map(|one| value(one, mode, lookup)).collect();
            or_missing(functions::call(name, &arguments?))
        }
    }
}

/// Everything is true except null, false, the empty string and 0.
fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(bool) => *bool,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn compare(left: &Value, sign: &str, right: &Value) -> bool {
    match sign {
        "==" => equal(left, right),
        "!=" => !equal(left, right),
        "<" => order(left, right) == Some(Ordering::Less),
        ">" => order(left, right) == Some(Ordering::Greater),
        "<=" => matches!(order(left, right), Some(Ordering::Less | Ordering::Equal)),
        _ => matches!(order(left, right), Some(Ordering::Greater | Ordering::Equal)),
    }
}
