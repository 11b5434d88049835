//! An independent evaluator of the few expressions and templates that the generated definitions use.
//!
//! A missing value is `None`: null in a condition, an error in a template. Not here: functions, arithmetic, and name
//! resolution (the caller passes a lookup).

use serde_json::Value;
use std::cmp::Ordering;

/// Finds the value at a path such as `["tasks", "a", "body", "v"]`.
pub type Lookup<'a> = dyn Fn(&[String]) -> Option<Value> + 'a;

/// Whether the condition is true. A path that leads nowhere is null.
pub fn holds(text: &str, lookup: &Lookup) -> bool {
    evaluate(text, lookup) == Some(Value::Bool(true))
}

pub fn evaluate(text: &str, lookup: &Lookup) -> Option<Value> {
    let mut parser = Parser { tokens: tokens(text), at: 0, lookup };
    let value = parser.or();
    assert!(parser.at == parser.tokens.len(), "the reference cannot read {text:?}");
    value
}

/// The value of a string that may contain `{{…}}`; `None` if one of them is missing.
pub fn render(text: &str, lookup: &Lookup) -> Option<Value> {
    let mut rest = text;
    let mut out = String::new();
    while let Some(start) = rest.find("{{") {
        let end = start + rest[start..].find("}}").expect("a template that ends");
        let value = evaluate(&rest[start + 2..end], lookup)?;
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

pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
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

pub fn equal(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left == right,
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

const SIGNS: [&str; 12] = ["==", "!=", "<=", ">=", "&&", "||", "??", "<", ">", "!", "(", ")"];

fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length;
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            length = sign.len();
            found.push(Token::Sign(sign));
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

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    lookup: &'a Lookup<'a>,
}

impl Parser<'_> {
    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(here)) if *here == sign);
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> Option<Value> {
        let mut left = self.and();
        while self.take("||") {
            let right = self.and();
            left = Some(Value::Bool(truth(&left) || truth(&right)));
        }
        left
    }

    fn and(&mut self) -> Option<Value> {
        let mut left = self.comparison();
        while self.take("&&") {
            let right = self.comparison();
            left = Some(Value::Bool(truth(&left) && truth(&right)));
        }
        left
    }

    fn comparison(&mut self) -> Option<Value> {
        let left = self.default();
        for sign in ["==", "!=", "<=", ">=", "<", ">"] {
            if self.take(sign) {
                let right = self.default();
                return Some(Value::Bool(compare(&left.unwrap_or_default(), sign, &right.unwrap_or_default())));
            }
        }
        left
    }

    fn default(&mut self) -> Option<Value> {
        let mut left = self.atom();
        while self.take("??") {
            let right = self.atom();
            left = left.filter(|value| !value.is_null()).or(right);
        }
        left
    }

    fn atom(&mut self) -> Option<Value> {
        if self.take("!") {
            let value = self.atom();
            return Some(Value::Bool(!truth(&value)));
        }
        if self.take("(") {
            let value = self.or();
            assert!(self.take(")"), "a parenthesis that closes");
            return value;
        }
        self.at += 1;
        match &self.tokens[self.at - 1] {
            Token::Path(path) => (self.lookup)(path),
            Token::Literal(value) => Some(value.clone()),
            Token::Sign(sign) => panic!("the reference did not expect {sign:?}"),
        }
    }
}

fn truth(value: &Option<Value>) -> bool {
    *value == Some(Value::Bool(true))
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
