//! Limits how many tokens the YAML scanner buffers. Inside `[…]` and `{…}` it may keep all tokens until the end, a
//! hundred bytes and more for each, because the whole might turn out to be a key.
//!
//! The guard counts the characters that can begin a token between two events: everything the scanner buffers came after
//! its last event. A block scalar (`|`, `>`) is one token, whatever it contains, so it is not counted.

use saphyr_parser::{Event, Span};
use std::cell::RefCell;
use std::str::Chars;

/// The most indicators between two events, which bounds the tokens that the scanner buffers.
pub const MAX_INDICATORS: usize = 400_000;

/// Characters that can begin a token.
const INDICATORS: &[u8] = b",[]{}:?&*!";

/// Whether the whole document has too few indicators to be a problem.
pub fn has_few_indicators(text: &str) -> bool {
    text.bytes().filter(|byte| INDICATORS.contains(byte)).count() <= MAX_INDICATORS
}

/// The state shared by the reader of events and the characters it reads from.
pub struct Guard<'t> {
    text: &'t str,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    counted: usize,
    /// The end of the last event, in characters.
    after: usize,
    /// For every open list and object, whether it is in flow style (in brackets).
    open: Vec<bool>,
    in_block: bool,
    tripped: bool,
}

impl<'t> Guard<'t> {
    pub fn new(text: &'t str) -> Guard<'t> {
        Guard { text, state: RefCell::default() }
    }

    /// The text, which ends early if the scanner buffers too much.
    pub fn chars(&self) -> Guarded<'_> {
        Guarded { guard: self, chars: self.text.chars() }
    }

    pub fn has_tripped(&self) -> bool {
        self.state.borrow().tripped
    }

    pub fn passed(&self, event: &Event<'_>, span: Span) {
        let mut state = self.state.borrow_mut();
        match event {
            // The start event of a block collection has no width; that of a bracket has.
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let flow = state.open.last() == Some(&true) || span.end.index() > span.start.index();
                state.open.push(flow);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                state.open.pop();
            }
            _ => {}
        }
        state.counted = 0;
        state.after = span.end.index();
        state.in_block = false;
    }

    /// Whether the scanner may continue although the count exceeds the limit.
    fn may_continue(&self, state: &mut State) -> bool {
        let flow = state.open.last() == Some(&true);
        let rest = self.text.char_indices().nth(state.after).map_or("", |(at, _)| &self.text[at..]);
        state.in_block = !flow && begins_block(rest);
        state.tripped = !state.in_block;
        state.in_block
    }
}

pub struct Guarded<'g> {
    guard: &'g Guard<'g>,
    chars: Chars<'g>,
}

impl Iterator for Guarded<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let next = self.chars.next()?;
        if next.is_ascii() && INDICATORS.contains(&(next as u8)) {
            let state = &mut *self.guard.state.borrow_mut();
            state.counted += 1;
            let held = state.in_block || state.counted <= MAX_INDICATORS;
            if state.tripped || !(held || self.guard.may_continue(state)) {
                self.chars = "".chars();
                return None;
            }
        }
        Some(next)
    }
}

/// Whether the next token is a block scalar: only indicators of the surrounding block, an anchor or a tag may precede
/// it. Returns false if in doubt.
fn begins_block(mut rest: &str) -> bool {
    loop {
        rest = rest.trim_start();
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        let skipped = match word {
            ":" | "-" | "?" | "---" => word.len(),
            _ if word.starts_with('#') => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            _ if word.starts_with(['&', '!']) && !word.contains(['[', '{', '"', '\'', ',']) => word.len(),
            _ => break,
        };
        rest = &rest[skipped..];
    }
    let line = rest.lines().next().unwrap_or_default();
    let Some(header) = line.strip_prefix(['|', '>']) else { return false };
    let header = header.split(" #").next().unwrap_or_default();
    header.trim_end().chars().all(|c| matches!(c, '+' | '-' | '1'..='9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_scalar_is_recognised_by_its_prefix() {
        for text in [": |\n  x", ":\n  - - >-\n x", " &a !!str |2+ # why\n  x", "\n# so\n- |\n", "--- |\n"] {
            assert!(begins_block(text), "{text:?}");
        }
        for text in [": [\n |", ": &a[ |\n", ": |x\n", "a: |\n", ": \"|\n\"", ", |\n", "", ":", ": !<[> |\n"] {
            assert!(!begins_block(text), "{text:?}");
        }
    }
}
