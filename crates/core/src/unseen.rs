//! Characters that a reader does not see but that change what a text says: controls, bidirectional marks, invisible
//! and joining characters, tags and variation selectors.
//!
//! Text of MCP servers and of workflows that agents wrote may contain them to hide instructions or to pose as something
//! else. People are shown them escaped ([`escaped`]); agents get the text without them ([`removed`]).

use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is one of them. Line breaks and tabs are not.
pub fn is_unseen(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{feff}' => true,
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// Whether a text has such characters.
pub fn has_unseen(text: &str) -> bool {
    text.contains(is_unseen)
}

/// The text with such characters as `⟨U+202E⟩`, for people.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !has_unseen(text) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_unseen(c) {
            true => write!(shown, "⟨U+{:04X}⟩", u32::from(c)).unwrap_or_default(),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// The text without such characters, for agents.
pub fn removed(text: &str) -> Cow<'_, str> {
    if has_unseen(text) { text.chars().filter(|c| !is_unseen(*c)).collect::<String>().into() } else { text.into() }
}

/// Rewrites all texts in a value, names included.
pub fn rewrite(value: &mut Value, how: fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(new) = how(text) {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, how)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| rewrite(field, how));
            if fields.keys().any(|name| has_unseen(name)) {
                let old = std::mem::take(fields);
                *fields = old.into_iter().map(|(name, field)| (how(&name).into_owned(), field)).collect();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn people_see_unseen_characters_and_agents_do_not_get_them() {
        let text = "pay\u{202e}\u{200b} now\u{7}\u{e0041}\r\nline\ttwo";
        assert_eq!(escaped(text), "pay⟨U+202E⟩⟨U+200B⟩ now⟨U+0007⟩⟨U+E0041⟩⟨U+000D⟩\nline\ttwo");
        assert_eq!(removed(text), "pay now\nline\ttwo");
        assert!(matches!(escaped("größe 日本"), Cow::Borrowed(_)));
        let mut value = json!({"a\u{200b}": ["x\u{2066}", 1]});
        rewrite(&mut value, removed);
        assert_eq!(value, json!({"a": ["x", 1]}));
    }
}
