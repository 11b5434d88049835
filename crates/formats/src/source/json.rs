//! Parses JSON with positions. Iterative, so that nested input does not deepen the call stack.
//!
//! Stops at the first syntax error, because later ones would be guesses; common mistakes (a trailing comma, a comment,
//! single quotes) get a hint.

use super::{Entry, Flaw, Mark, Meter, Node, Span, TOO_DEEP, Value, scalar};
use crate::code;
use stepwell_core::limits;
use stepwell_core::quote::quote;

pub fn read(text: &str) -> Result<Node, Flaw> {
    let mut cursor = Cursor { bytes: text.as_bytes(), text, at: 0, mark: Mark::START, meter: Meter::default() };
    let root = cursor.document()?;
    cursor.space();
    match cursor.peek() {
        None => Ok(root),
        Some(_) => Err(cursor.flaw("unexpected text after the end of the document")),
    }
}

struct Cursor<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
    mark: Mark,
    meter: Meter,
}

/// An object or list that is still open.
enum Frame {
    List(Vec<Node>, Mark),
    Map(Vec<Entry>, Mark, Option<(String, Span)>),
}

impl Cursor<'_> {
    fn document(&mut self) -> Result<Node, Flaw> {
        let mut open: Vec<Frame> = Vec::new();
        'value: loop {
            self.space();
            let start = self.mark;
            self.charge(1, 0)?;
            let mut node = match self.peek() {
                Some(c @ (b'{' | b'[')) => {
                    if open.len() >= limits::MAX_DEPTH {
                        return Err(Flaw::new(TOO_DEEP.0, TOO_DEEP.1, Span::at(start)));
                    }
                    self.bump();
                    self.space();
                    if c == b'[' && self.peek() != Some(b']') {
                        open.push(Frame::List(Vec::new(), start));
                        continue 'value;
                    }
                    if c == b'{' && self.peek() != Some(b'}') {
                        let key = self.key()?;
                        open.push(Frame::Map(Vec::new(), start, Some(key)));
                        continue 'value;
                    }
                    self.bump();
                    let value = if c == b'[' { Value::List(Vec::new()) } else { Value::Map(Vec::new()) };
                    self.node(value, start)
                }
                Some(b'"') => {
                    let text = self.string()?;
                    self.charge(0, text.len())?;
                    self.node(Value::String(text), start)
                }
                Some(b'-' | b'0'..=b'9') => {
                    let value = self.number()?;
                    self.node(value, start)
                }
                _ => {
                    let value = self.word()?;
                    self.node(value, start)
                }
            };
            // The value is complete: add it to its frame, and close frames until one expects another value.
            loop {
                let Some(frame) = open.pop() else { return Ok(node) };
                self.space();
                match (frame, self.peek()) {
                    (Frame::List(mut items, start), Some(b',')) => {
                        self.bump();
                        items.push(node);
                        self.no_trailing_comma(b']')?;
                        open.push(Frame::List(items, start));
                        continue 'value;
                    }
                    (Frame::List(mut items, start), Some(b']')) => {
                        self.bump();
                        items.push(node);
                        node = self.node(Value::List(items), start);
                    }
                    (Frame::Map(mut entries, start, key), next @ Some(b',' | b'}')) => {
                        self.bump();
                        if let Some((key, span)) = key {
                            entries.push(Entry { key, key_span: Some(span), value: node });
                        }
                        if next == Some(b',') {
                            self.no_trailing_comma(b'}')?;
                            let key = self.key()?;
                            open.push(Frame::Map(entries, start, Some(key)));
                            continue 'value;
                        }
                        node = self.node(Value::Map(entries), start);
                    }
                    (Frame::List(_, from), None) => return Err(self.unclosed("list", from)),
                    (Frame::Map(_, from, _), None) => return Err(self.unclosed("object", from)),
                    (Frame::List(..), Some(_)) => return Err(self.flaw("expected `,` or `]` here")),
                    (Frame::Map(..), Some(_)) => return Err(self.flaw("expected `,` or `}` here")),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(String, Span), Flaw> {
        self.space();
        let start = self.mark;
        if self.peek() != Some(b'"') {
            return Err(self.flaw("expected a key in double quotes here"));
        }
        let key = self.string()?;
        self.charge(0, key.len())?;
        let span = Span { start, end: self.mark };
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.flaw("expected `:` after the key"));
        }
        self.bump();
        Ok((key, span))
    }

    fn string(&mut self) -> Result<String, Flaw> {
        let start = self.mark;
        self.bump();
        let mut out = String::new();
        loop {
            let run = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | b'\n' | b'\r' | b'\t')) {
                self.bump();
            }
            out.push_str(&self.text[run..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.bump();
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(b'\t') => return Err(self.flaw("write a tab in a string as \\t")),
                _ => {
                    return Err(Flaw::new(code::BAD_JSON, "this string is not closed", Span::at(start))
                        .hint("write a line break in a string as \\n"));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Flaw> {
        let start = self.mark;
        self.bump();
        let Some(c) = self.peek() else { return Err(self.flaw("this string is not closed")) };
        self.bump();
        Ok(match c {
            b'"' | b'\\' | b'/' => char::from(c),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(start),
            _ => return Err(self.bad_escape("this escape does not exist in JSON", start)),
        })
    }

    fn unicode(&mut self, start: Mark) -> Result<char, Flaw> {
        let first = self.four(start)?;
        if (0xdc00..0xe000).contains(&first) {
            return Err(self.bad_escape("half of a surrogate pair is not a character", start));
        }
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.bad_escape("this is not a character", start));
        }
        if self.peek() == Some(b'\\') && self.bytes.get(self.at + 1) == Some(&b'u') {
            self.bump();
            self.bump();
            let second = self.four(start)?;
            if (0xdc00..0xe000).contains(&second) {
                let point = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(point).ok_or_else(|| self.bad_escape("this is not a character", start));
            }
        }
        Err(self.bad_escape("half of a surrogate pair is not a character", start))
    }

    fn four(&mut self, start: Mark) -> Result<u32, Flaw> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else { return Err(self.bad_escape("\\u takes four hexadecimal digits", start)) };
            value = value * 16 + digit;
            self.bump();
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, Flaw> {
        let (start, from) = (self.mark, self.at);
        while matches!(self.peek(), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
            self.bump();
        }
        let text = &self.text[from..self.at];
        let span = Span { start, end: self.mark };
        if !well_formed(text) {
            return Err(Flaw::new(code::BAD_JSON, "this is not a JSON number", span));
        }
        let kept = scalar::number(text).map(Value::Number);
        Ok(kept.unwrap_or_else(|why| Value::Bad(Box::new(Flaw::new(code::BAD_NUMBER, why, span)))))
    }

    fn word(&mut self) -> Result<Value, Flaw> {
        let (start, from) = (self.mark, self.at);
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.bump();
        }
        let word = &self.text[from..self.at];
        match word {
            "null" => return Ok(Value::Null),
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "" => return Err(self.flaw("expected a value here")),
            _ => {}
        }
        let span = Span { start, end: self.mark };
        let shown: String = word.chars().take(40).collect();
        Err(Flaw::new(code::BAD_JSON, format!("{} is not a JSON value", quote(&shown)), span)
            .hint("put text in double quotes; the only bare words are true, false and null"))
    }

    fn no_trailing_comma(&mut self, close: u8) -> Result<(), Flaw> {
        let comma = Mark { column: self.mark.column.saturating_sub(1), ..self.mark };
        self.space();
        if self.peek() != Some(close) {
            return Ok(());
        }
        let message = format!("a comma is not allowed before `{}`", char::from(close));
        Err(Flaw::new(code::BAD_JSON, message, Span::at(comma)).hint("remove it; JSON has no trailing commas"))
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.bump();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn bump(&mut self) {
        let Some(&byte) = self.bytes.get(self.at) else { return };
        self.at += 1;
        if byte == b'\n' || (byte == b'\r' && self.peek() != Some(b'\n')) {
            self.mark = Mark { line: self.mark.line + 1, column: 1 };
        } else if byte & 0xc0 != 0x80 {
            self.mark.column += 1;
        }
    }

    fn node(&self, value: Value, start: Mark) -> Node {
        Node::new(value, Some(Span { start, end: self.mark }))
    }

    fn charge(&mut self, nodes: usize, text: usize) -> Result<(), Flaw> {
        self.meter.charge(nodes, text).map_err(|(code, message)| Flaw::new(code, message, Span::at(self.mark)))
    }

    fn bad_escape(&self, message: &str, start: Mark) -> Flaw {
        Flaw::new(code::BAD_ESCAPE, message, Span { start, end: self.mark })
    }

    fn unclosed(&self, what: &str, from: Mark) -> Flaw {
        Flaw::new(code::BAD_JSON, format!("this {what} is not closed"), Span::at(from))
    }

    fn flaw(&self, message: &str) -> Flaw {
        let flaw = Flaw::new(code::BAD_JSON, message, Span::at(self.mark));
        match self.peek() {
            Some(b'\'') => flaw.hint("put JSON strings in double quotes"),
            Some(b'/' | b'#') => flaw.hint("JSON has no comments; use YAML for comments"),
            Some(b'"') if message.starts_with("expected `,`") => flaw.hint("a comma is missing before this"),
            None => flaw.hint("the document ends too early"),
            _ => flaw,
        }
    }
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?`
fn well_formed(text: &str) -> bool {
    let digits = |t: &str| t.len() - t.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(unsigned);
    if whole == 0 || (whole > 1 && unsigned.starts_with('0')) {
        return false;
    }
    let mut rest = &unsigned[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let places = digits(fraction);
        if places == 0 {
            return false;
        }
        rest = &fraction[places..];
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return rest.is_empty() };
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_and_rejects_the_same_as_serde_json() {
        for text in [
            r#"{"a": [1, -2.5, 1e3, true, null, "x\n\u00e9\ud83d\ude00"], "b": {}, "c": []}"#,
            "[]",
            "\"\"",
            " 0 ",
            "[[],[[]],{}]",
            "{\"a\":{\"b\":{\"c\":0}}}\r\n",
            "[1,]",
            "{\"a\":1,}",
            "[1 2]",
            "{'a': 1}",
            "01",
            "1.",
            "-",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"open",
            "{\"a\"",
            "{\"a\":",
            "[",
            "tru",
            "nulls",
            "{} {}",
            "// no",
            "1e999999",
            "\"a\tb\"",
        ] {
            let sound = |node: &mut Node| super::super::collect_flaws(node).list.is_empty();
            let ours = read(text).ok().and_then(|mut node| sound(&mut node).then(|| node.to_json()));
            let theirs = serde_json::from_str::<serde_json::Value>(text).ok();
            assert_eq!(ours, theirs, "{text}");
        }
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let check = |text: &str, line: u32, column: u32| {
            let flaw = read(text).expect_err(text);
            assert_eq!(flaw.span.map(|s| (s.start.line, s.start.column)), Some((line, column)), "{text:?}");
        };
        check("{\n  \"é\": tru\n}", 2, 8);
        check("{\r\n  \"a\": 1,\r\n}", 2, 9);
        check("[\r1,\r\rx]", 4, 1);
        check("[1", 1, 1);
        check("\"\\ud800\"", 1, 2);
    }
}
