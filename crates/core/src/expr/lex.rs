//! Splits an expression into tokens. A whole path is one token, because it has its own lexical rules: after a dot a
//! name may begin with a digit.

use super::{Segment, Span, SyntaxError, number};
use serde_json::Number;
use std::fmt;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// Also `true`, `and` and function names: the parser distinguishes them.
    Path(Vec<Segment>),
    Number(Number),
    Text(String),
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Not,
    Default,
    Plus,
    Minus,
    Times,
    Over,
    Percent,
    Open,
    Close,
    Comma,
    End,
}

impl Token {
    /// The name, if the token is a path of a single name.
    pub fn word(&self) -> Option<&str> {
        match self {
            Token::Path(segments) => match segments.as_slice() {
                [Segment::Key(word)] => Some(word),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a value can start with this token.
    pub fn opens_operand(&self) -> bool {
        matches!(self, Token::Path(_) | Token::Number(_) | Token::Text(_) | Token::Not | Token::Minus | Token::Open)
    }

    /// Whether a value can end with this token.
    fn ends_operand(&self) -> bool {
        matches!(self, Token::Path(_) | Token::Number(_) | Token::Text(_) | Token::Close)
    }
}

/// Whether `key` can be written after a dot without quotes.
pub(super) fn is_segment(key: &str) -> bool {
    !key.is_empty() && key.chars().all(in_name)
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

pub(super) struct Lexer<'s> {
    source: &'s str,
    at: usize,
    /// Whether a value ends before this position, so that `-` subtracts.
    after_operand: bool,
}

type Lexed<T> = Result<T, SyntaxError>;

impl<'s> Lexer<'s> {
    pub fn new(source: &'s str) -> Lexer<'s> {
        Lexer { source, at: 0, after_operand: false }
    }

    pub fn next(&mut self) -> Lexed<(Token, Span)> {
        self.skip_space();
        let start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(c) if starts_name(c) => self.path()?,
            Some('"' | '\'') => Token::Text(self.text()?),
            Some('-') => self.minus()?,
            Some(c) if c.is_ascii_digit() => self.number()?,
            Some(c) => self.operator(c)?,
        };
        self.after_operand = token.ends_operand();
        Ok((token, Span::new(start, self.at)))
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        self.at = self.source.len() - self.rest().trim_start().len();
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn name(&mut self) -> &'s str {
        let rest = self.rest();
        let name = &rest[..rest.find(|c| !in_name(c)).unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    fn path(&mut self) -> Lexed<Token> {
        let mut segments = vec![Segment::Key(self.name().into())];
        loop {
            let start = self.at;
            if self.eat(".") {
                let name = self.name();
                if name.is_empty() {
                    let what = match self.peek() {
                        None => "the end".to_string(),
                        Some(c) => format!("`{c}`"),
                    };
                    let message = format!("expected a name after `.`, found {what}");
                    return Err(SyntaxError::new(Span::new(start, self.at), message)
                        .hint("write a name with other characters as [\"like this\"]"));
                }
                segments.push(Segment::Key(name.into()));
            } else if self.eat("[") {
                segments.push(self.index(start)?);
            } else {
                return Ok(Token::Path(segments));
            }
        }
    }

    /// Reads the content of brackets, after the opening one.
    fn index(&mut self, start: usize) -> Lexed<Segment> {
        self.skip_space();
        let segment = match self.peek() {
            Some('"' | '\'') => Segment::Key(self.text()?.into()),
            Some(c) if c.is_ascii_digit() => {
                let digits = self.name();
                let index = digits.parse().map_err(|_| {
                    let at = Span::new(self.at - digits.len(), self.at);
                    SyntaxError::new(at, format!("`{digits}` is not a position in a list"))
                })?;
                Segment::Index(index)
            }
            Some('-') => {
                let message = "list positions start at 0 and cannot be negative";
                return Err(self.error(start, message).hint("last(list) returns the last item"));
            }
            _ => {
                let message = "expected a number or a quoted name after `[`";
                return Err(self.error(start, message).hint("write [0] or [\"name\"]"));
            }
        };
        self.skip_space();
        if self.eat("]") { Ok(segment) } else { Err(self.error(start, "`[` is not closed")) }
    }

    fn number(&mut self) -> Lexed<Token> {
        let start = self.at;
        self.at += number::scan(self.rest());
        let written = &self.source[start..self.at];
        if !self.name().is_empty() {
            let written = &self.source[start..self.at];
            let message = format!("`{written}` is neither a number nor a name");
            let hint = match written.trim_start_matches('-').split_once('-') {
                Some((number, rest)) => {
                    let sign = if written.starts_with('-') { "-" } else { "" };
                    format!("write `{sign}{number} - {rest}` to subtract, or \"{written}\" if it is a string")
                }
                None => format!("write \"{written}\" if it is a string"),
            };
            return Err(self.error(start, message).hint(hint));
        }
        match number::parse(written) {
            Some(number) => Ok(Token::Number(number)),
            None => Err(self.error(start, format!("`{written}` is too large for a number"))),
        }
    }

    /// A hyphen is a part of names, so it subtracts only with a space on each side. Where a value is expected, it is
    /// the sign of a number or of an operand.
    fn minus(&mut self) -> Lexed<Token> {
        let start = self.at;
        if !self.after_operand && number::scan(self.rest()) > 0 {
            return self.number();
        }
        let spaced = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let before = spaced(self.source.get(..start).and_then(|text| text.chars().next_back()));
        self.bump();
        if self.after_operand && !(before && spaced(self.peek())) {
            let error = self.error(start, "`-` needs a space on each side to subtract");
            return Err(error.hint("write a - b; without spaces, a hyphen is part of a name"));
        }
        Ok(Token::Minus)
    }

    fn text(&mut self) -> Lexed<String> {
        let start = self.at;
        let quote = self.bump();
        let mut text = String::new();
        while let Some(c) = self.bump() {
            if Some(c) == quote {
                return Ok(text);
            }
            text.push(if c == '\\' { self.escaped()? } else { c });
        }
        Err(self.error(start, "the string is not closed").hint("close it with the same kind of quote"))
    }

    /// Reads the character after a backslash.
    fn escaped(&mut self) -> Lexed<char> {
        let start = self.at - 1;
        Ok(match self.bump() {
            Some(c @ ('"' | '\'' | '\\' | '/')) => c,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let message = "`\\u` needs the four hexadecimal digits of a character";
                return self.unicode().ok_or_else(|| self.error(start, message));
            }
            Some(c) => {
                let message = format!("`\\{c}` is not a valid escape");
                return Err(self.error(start, message).hint("write a backslash as \\\\"));
            }
            None => return Err(self.error(start, "the string is not closed")),
        })
    }

    /// As in JSON, a character beyond the first plane is two escapes.
    fn unicode(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        let second = if self.eat("\\u") { self.four_digits()? } else { return None };
        char::decode_utf16([first as u16, second as u16]).next()?.ok()
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn operator(&mut self, first: char) -> Lexed<Token> {
        let start = self.at;
        if let Some(comparison) = self.comparison() {
            return comparison;
        }
        let known = OPERATORS.iter().find(|(written, _)| self.rest().starts_with(written));
        let other = NOT_OPERATORS.iter().find(|(written, _)| self.rest().starts_with(written));
        match (known, other) {
            // The longer one: `&&` is not `&`, and `**` is not `*`.
            (Some((written, token)), other) if other.is_none_or(|(other, _)| written.len() >= other.len()) => {
                self.at += written.len();
                return Ok(token.clone());
            }
            (_, Some((written, hint))) => {
                self.at += written.len();
                return Err(self.error(start, format!("`{written}` is not an operator")).hint(*hint));
            }
            _ => {}
        }
        self.bump();
        let error = self.error(start, format!("unexpected `{}`", first.escape_debug()));
        Err(match first {
            '{' | '}' | '$' => error.hint("write names without braces or `$`"),
            '`' | '“' | '”' | '‘' | '’' => error.hint("write a string between \" or '"),
            '[' => error.hint("there are no list literals; [0] can only follow a path"),
            _ => error,
        })
    }

    fn comparison(&mut self) -> Option<Lexed<Token>> {
        let start = self.at;
        let rest = self.rest();
        let written = &rest[..rest.find(|c| !matches!(c, '=' | '!' | '<' | '>')).unwrap_or(rest.len())];
        // A `!` after another sign is an operator of its own: `a==!b`, `!!a`.
        let end = written.char_indices().skip(1).find(|(_, c)| *c == '!').map_or(written.len(), |(at, _)| at);
        let signs = match &written[..end] {
            signs if signs.starts_with('!') && !signs.starts_with("!=") => "!",
            signs => signs,
        };
        self.at += signs.len();
        let meant = match signs {
            "" => return None,
            "==" => return Some(Ok(Token::Equal)),
            "!=" => return Some(Ok(Token::NotEqual)),
            "<" => return Some(Ok(Token::Less)),
            "<=" => return Some(Ok(Token::LessOrEqual)),
            ">" => return Some(Ok(Token::Greater)),
            ">=" => return Some(Ok(Token::GreaterOrEqual)),
            "!" => return Some(Ok(Token::Not)),
            "=" | "===" => "==",
            "!==" | "<>" => "!=",
            "=<" => "<=",
            "=>" => ">=",
            _ => return Some(Err(self.error(start, format!("`{signs}` is not an operator")))),
        };
        let error = self.error(start, format!("`{signs}` is not an operator"));
        Some(Err(error.hint(format!("did you mean `{meant}`?"))))
    }

    fn error(&self, start: usize, message: impl fmt::Display) -> SyntaxError {
        SyntaxError::new(Span::new(start, self.at), message.to_string())
    }
}

const OPERATORS: &[(&str, Token)] = &[
    ("&&", Token::And),
    ("||", Token::Or),
    ("??", Token::Default),
    ("+", Token::Plus),
    ("*", Token::Times),
    ("/", Token::Over),
    ("%", Token::Percent),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

/// Operators of other languages, and what to write instead.
const NOT_OPERATORS: &[(&str, &str)] = &[
    ("&", "did you mean `&&`?"),
    ("|", "did you mean `||`? A function is called as upper(x)"),
    ("++", "write x + 1"),
    ("**", "there are no powers; write x * x"),
    ("//", "write floor(x / y)"),
    ("?.", "a path that leads nowhere is already null; `??` provides a default"),
    ("?", "there is no conditional operator; `x ?? y` is y if x is null"),
];
