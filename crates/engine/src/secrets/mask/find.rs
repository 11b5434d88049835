//! Finds secrets in a text in any of their forms, all of them in one pass. Each character may be escaped differently,
//! because services differ in what they escape.

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

/// All secrets in one form, so that a text is compared with all of them at once: the secrets that begin with the bytes
/// read so far are a range of the sorted patterns, and each further byte narrows it.
pub struct Patterns {
    /// Sorted, in lower case and without duplicates, each with the number of its secret.
    sorted: Vec<(Vec<u8>, u32)>,
    form: Form,
    /// The fewest bytes that count as a match at the end of a truncated text.
    least: usize,
    /// `highest[n][i]` is the highest number of a secret among the 2^n patterns from `i` on.
    highest: Vec<Vec<u32>>,
    /// The bytes that a match can start with.
    begins: [bool; 256],
}

/// A match: its end, and the number of the secret.
pub type Match = (usize, u32);

/// Patterns that agree with what was read so far, the bytes of them that were read, and the place in the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Reading {
    from: usize,
    to: usize,
    matched: usize,
    place: usize,
}

impl Patterns {
    /// The forms of these secrets, which are numbered in order.
    pub fn all(secrets: &[String]) -> [Patterns; 3] {
        let hex = |secret: &str| vec![secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>().into()];
        let plain = |secret: &str| vec![secret.into()];
        let base64 = |secret: &str| (0..3).map(|before| base64(secret, before)).collect();
        [
            Patterns::new(secrets, Form::Text, super::SHORTEST, plain),
            Patterns::new(secrets, Form::Text, 2 * super::SHORTEST, hex),
            Patterns::new(secrets, Form::Base64, 10, base64),
        ]
    }

    fn new(secrets: &[String], form: Form, least: usize, written: impl Fn(&str) -> Vec<Vec<u8>>) -> Patterns {
        let mut sorted: Vec<(Vec<u8>, u32)> = Vec::new();
        for (secret, number) in secrets.iter().zip(0..) {
            sorted.extend(written(secret).into_iter().map(|bytes| (bytes.to_ascii_lowercase(), number)));
        }
        // Of two equal secrets the last one is named.
        sorted.sort_by(|one, two| one.0.cmp(&two.0).then(two.1.cmp(&one.1)));
        sorted.dedup_by(|two, one| one.0 == two.0);
        let mut highest = vec![sorted.iter().map(|(_, number)| *number).collect::<Vec<u32>>()];
        while let Some(last) = highest.last().filter(|last| last.len() > 1 << (highest.len() - 1)) {
            let width = 1 << (highest.len() - 1);
            highest.push(last.iter().zip(&last[width..]).map(|(one, two)| *one.max(two)).collect());
        }
        let mut patterns = Patterns { sorted, form, least, highest, begins: [false; 256] };
        for byte in 0..=255u8 {
            let whole = patterns.whole(0);
            let starts = whole.is_some_and(|whole| patterns.narrow(whole, patterns.folded(byte)).is_some());
            patterns.begins[usize::from(byte)] = starts || matches!(byte, b'%' | b'\\' | b'&');
        }
        patterns
    }

    /// Whether a match can start with this byte.
    pub fn begin_with(&self, byte: u8) -> bool {
        self.begins[usize::from(byte)]
    }

    fn whole(&self, place: usize) -> Option<Reading> {
        let to = self.sorted.len();
        (to > 0).then_some(Reading { from: 0, to, matched: 0, place })
    }

    /// A byte as patterns have it. Case does not count: host names are lower-cased, and hiding too much does no harm.
    fn folded(&self, found: u8) -> u8 {
        match (self.form, found) {
            (Form::Base64, b'-') => b'+',
            (Form::Base64, b'_') => b'/',
            (_, other) => other.to_ascii_lowercase(),
        }
    }

    /// Whether a byte is a line break within base64, which is often wrapped.
    fn is_break(&self, found: u8, matched: usize) -> bool {
        self.form == Form::Base64 && matched > 0 && matches!(found, b'\r' | b'\n')
    }

    /// The patterns whose next byte is this one.
    fn narrow(&self, reading: Reading, byte: u8) -> Option<Reading> {
        let Reading { from, to, matched, place } = reading;
        let range = &self.sorted[from..to];
        let next = |(pattern, _): &(Vec<u8>, u32)| pattern.get(matched).copied();
        let first = from + range.partition_point(|pattern| next(pattern) < Some(byte));
        let end = from + range.partition_point(|pattern| next(pattern) <= Some(byte));
        (first < end).then_some(Reading { from: first, to: end, matched: matched + 1, place })
    }

    /// The highest number of a secret in a range that is not empty.
    fn highest(&self, from: usize, to: usize) -> u32 {
        let level = (to - from).ilog2() as usize;
        self.highest[level][from].max(self.highest[level][to - (1 << level)])
    }

    /// The longest match that starts at `at`; of equally long ones, that of the last secret. Counts its steps in `work`.
    pub fn end(&self, text: &[u8], at: usize, ending: Ending, work: &mut u64) -> Option<Match> {
        // A text nearly always has one reading. Then these stay empty and do not allocate.
        let (mut todo, mut seen): (Vec<Reading>, HashSet<Reading>) = Default::default();
        let (mut next, mut best) = (self.whole(at), None);
        while let Some(mut reading) = next.take().or_else(|| todo.pop()) {
            loop {
                *work += 1;
                let place = reading.place;
                // A pattern sorts before those that it is the start of.
                let (pattern, number) = &self.sorted[reading.from];
                if pattern.len() == reading.matched {
                    best = best.max(Some((place, *number)));
                    reading.from += 1;
                    if reading.from == reading.to {
                        break;
                    }
                }
                if ending == Ending::Cut && reading.matched >= self.least && is_cut(&text[place..]) {
                    let dots = text[place..].starts_with("…".as_bytes()) || text[place..].starts_with(b"...");
                    let end = if dots { place } else { text.len() };
                    best = best.max(Some((end, self.highest(reading.from, reading.to))));
                    break;
                }
                if let Some(&plain) = text.get(place).filter(|byte| !ESCAPES.contains(byte)) {
                    if self.is_break(plain, reading.matched) {
                        reading.place += 1;
                        continue;
                    }
                    let Some(further) = self.narrow(reading, self.folded(plain)) else { break };
                    reading = Reading { place: place + 1, ..further };
                    continue;
                }
                let mut readings = self.readings(text, reading);
                let Some(first) = readings.pop() else { break };
                for other in readings {
                    if seen.insert(other) {
                        todo.push(other);
                    }
                }
                reading = first;
            }
        }
        best
    }

    /// All ways to read the text at this place that some patterns continue with.
    fn readings(&self, text: &[u8], at: Reading) -> Vec<Reading> {
        let mut readings = Vec::new();
        let left = &text[at.place..];
        let Some(&found) = left.first() else { return readings };
        let mut add = |reading: Option<Reading>, length: usize| {
            readings.extend(reading.map(|reading| Reading { place: at.place + length, ..reading }));
        };
        add(self.narrow(at, self.folded(found)), 1);
        if found == b'+' {
            add(self.narrow(at, b' '), 1);
        }
        let mut one = |byte: u8, length: usize| match self.is_break(byte, at.matched) {
            true => add(Some(at), length),
            false => add(self.narrow(at, self.folded(byte)), length),
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
            let bytes = char.encode_utf8(&mut buffer).bytes();
            let mut all = bytes.map(|byte| byte.to_ascii_lowercase());
            add(all.try_fold(at, |reading, byte| self.narrow(reading, byte)), length);
        }
        readings
    }
}

/// The part of a secret's base64 form that does not depend on the surrounding bytes. `before` is the number of bytes
/// before the secret, modulo three.
fn base64(secret: &str, before: usize) -> Vec<u8> {
    let padded = [vec![0; before], secret.into()].concat();
    let encoded = STANDARD_NO_PAD.encode(&padded).into_bytes();
    // Each letter has six bits: the first and the last ones may contain bits of the surrounding bytes.
    let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    encoded[from..to].to_vec()
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
