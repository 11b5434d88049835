//! Finds a secret in a text in any of its forms. Each character may be escaped differently, because services differ in
//! what they escape.

use super::Ending;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::collections::HashSet;

/// The most backslashes before an escaped character: escaping one backslash three times gives eight.
const MOST_BACKSLASHES: usize = 8;
/// Bytes that may start an escape.
const ESCAPES: &[u8] = b"%\\&+";
/// The most letters of an HTML entity.
const LONGEST_ENTITY: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Base64,
}

/// One form of a secret.
pub struct Pattern {
    bytes: Vec<u8>,
    form: Form,
    /// The fewest bytes that count as a match at the end of a truncated text.
    least: usize,
}

/// A number of bytes of the pattern, and of the bytes of the text that represent them.
type Step = (usize, usize);

impl Pattern {
    pub fn all(secret: &str) -> Vec<Pattern> {
        let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut all = vec![
            Pattern { bytes: secret.into(), form: Form::Text, least: super::SHORTEST },
            Pattern { bytes: hex.into(), form: Form::Text, least: 2 * super::SHORTEST },
        ];
        all.extend((0..3).map(|before| Pattern::base64(secret, before)));
        all
    }

    /// The part of a secret's base64 form that does not depend on the surrounding bytes. `before` is the number of
    /// bytes before the secret, modulo three.
    fn base64(secret: &str, before: usize) -> Pattern {
        let padded = [vec![0; before], secret.into()].concat();
        let encoded = STANDARD_NO_PAD.encode(&padded).into_bytes();
        // Each letter has six bits: the first and the last ones may contain bits of the surrounding bytes.
        let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        Pattern { bytes: encoded[from..to].to_vec(), form: Form::Base64, least: 10 }
    }

    /// Marks the bytes that a match can start with.
    pub fn begins(&self, begins: &mut [bool; 256]) {
        for byte in 0..=255u8 {
            begins[usize::from(byte)] |= self.same(byte, self.bytes[0]) || matches!(byte, b'%' | b'\\' | b'&');
        }
    }

    /// Compares without regard to case: host names are lower-cased, and hiding too much does no harm.
    fn same(&self, found: u8, wanted: u8) -> bool {
        let found = match (self.form, found) {
            (Form::Base64, b'-') => b'+',
            (Form::Base64, b'_') => b'/',
            (_, other) => other,
        };
        found.eq_ignore_ascii_case(&wanted)
    }

    /// Whether a byte is a line break within base64, which is often wrapped.
    fn is_break(&self, found: u8, matched: usize) -> bool {
        self.form == Form::Base64 && matched > 0 && matches!(found, b'\r' | b'\n')
    }

    /// The end of a match that starts at `at`.
    pub fn end(&self, text: &[u8], at: usize, ending: Ending) -> Option<usize> {
        // A text nearly always has one reading. Then these stay empty and do not allocate.
        let (mut todo, mut seen): (Vec<Step>, HashSet<Step>) = Default::default();
        let (mut next, mut best) = (Some((0, at)), None);
        while let Some((mut matched, mut place)) = next.take().or_else(|| todo.pop()) {
            loop {
                if matched == self.bytes.len() {
                    best = best.max(Some(place));
                    break;
                }
                if ending == Ending::Cut && matched >= self.least && is_cut(&text[place..]) {
                    let dots = text[place..].starts_with("…".as_bytes()) || text[place..].starts_with(b"...");
                    best = best.max(Some(if dots { place } else { text.len() }));
                    break;
                }
                if let Some(&plain) = text.get(place).filter(|byte| !ESCAPES.contains(byte)) {
                    if self.is_break(plain, matched) {
                        place += 1;
                        continue;
                    }
                    if !self.same(plain, self.bytes[matched]) {
                        break;
                    }
                    (matched, place) = (matched + 1, place + 1);
                    continue;
                }
                let mut steps = self.steps(text, place, matched);
                let Some(first) = steps.pop() else { break };
                for (more, length) in steps {
                    let other = (matched + more, place + length);
                    if seen.insert(other) {
                        todo.push(other);
                    }
                }
                (matched, place) = (matched + first.0, place + first.1);
            }
        }
        best
    }

    /// All readings of the text at this place that match the next bytes of the pattern.
    fn steps(&self, text: &[u8], place: usize, matched: usize) -> Steps {
        let mut steps = Steps::default();
        let (wanted, left) = (&self.bytes[matched..], &text[place..]);
        let Some(&found) = left.first() else { return steps };
        if self.same(found, wanted[0]) || (found == b'+' && wanted[0] == b' ') {
            steps.push((1, 1));
        }
        let mut one = |byte: u8, length: usize| {
            if self.is_break(byte, matched) {
                steps.push((0, length));
            } else if self.same(byte, wanted[0]) {
                steps.push((1, length));
            }
        };
        let mut char = None;
        match found {
            b'%' => {
                hex(left, 1, 2).into_iter().for_each(|byte| one(byte as u8, 3));
                if left.starts_with(b"%25") {
                    hex(left, 3, 2).into_iter().for_each(|byte| one(byte as u8, 5));
                }
            }
            b'\\' => {
                let run = left.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
                match left.get(run) {
                    Some(b'u') => char = unicode(left, run),
                    Some(b'x') => hex(left, run + 1, 2).into_iter().for_each(|byte| one(byte as u8, run + 3)),
                    Some(&letter) => unescaped(letter).into_iter().for_each(|byte| one(byte, run + 1)),
                    None => {}
                }
                for length in [2, 4, 8].into_iter().filter(|length| *length <= run) {
                    one(b'\\', length);
                }
            }
            b'&' => char = entity(left),
            _ => {}
        }
        if let Some((char, length)) = char {
            let mut buffer = [0; 4];
            let bytes = char.encode_utf8(&mut buffer).as_bytes();
            if wanted.len() >= bytes.len() && wanted[..bytes.len()].eq_ignore_ascii_case(bytes) {
                steps.push((bytes.len(), length));
            }
        }
        steps
    }
}

/// The possible next steps, without allocation.
#[derive(Default)]
struct Steps {
    list: [Step; 8],
    count: usize,
}

impl Steps {
    fn push(&mut self, step: Step) {
        if self.count < self.list.len() {
            self.list[self.count] = step;
            self.count += 1;
        }
    }

    fn pop(&mut self) -> Option<Step> {
        self.count = self.count.checked_sub(1)?;
        Some(self.list[self.count])
    }
}

impl IntoIterator for Steps {
    type Item = Step;
    type IntoIter = std::iter::Take<std::array::IntoIter<Step, 8>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter().take(self.count)
    }
}

/// Whether the rest is empty, starts with an ellipsis, or is half an escape.
fn is_cut(left: &[u8]) -> bool {
    let half = left.len() < 6 && matches!(left.first(), Some(b'%' | b'\\' | b'&'));
    left.is_empty() || half || left.starts_with("…".as_bytes()) || left.starts_with(b"...")
}

fn hex(text: &[u8], from: usize, digits: usize) -> Option<u32> {
    let digits = text.get(from..from + digits)?.iter().map(|digit| char::from(*digit).to_digit(16));
    digits.reduce(|number, digit| Some(number? * 16 + digit?))?
}

fn unescaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 12,
        b'r' => b'\r',
        b'"' | b'/' | b'\'' => letter,
        _ => return None,
    })
}

/// Reads `\u00e9`, with `run` backslashes. A character outside the basic plane has two such escapes.
fn unicode(text: &[u8], run: usize) -> Option<(char, usize)> {
    let length = run + 5;
    let first = hex(text, run + 1, 4)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, length));
    }
    let again = text.get(length..)?;
    let prefix = again.len() > run && again[..run].iter().all(|byte| *byte == b'\\') && again[run] == b'u';
    let second = hex(again, run + 1, 4).filter(|second| prefix && (0xdc00..0xe000).contains(second))?;
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 2 * length))
}

/// Reads an entity: `&amp;`, `&#38;`, `&#x26;`.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    let end = text.iter().take(LONGEST_ENTITY + 2).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[1..end]).ok()?;
    let char = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let hex = number.strip_prefix(['x', 'X']).map(|digits| u32::from_str_radix(digits, 16));
            char::from_u32(hex.unwrap_or_else(|| number.parse()).ok()?)?
        }
    };
    Some((char, end + 1))
}
