//! Text of an author, such as a name, quoted for messages.

use std::fmt::Write;

/// Quotes `text` as a JSON string. Characters that a terminal acts on or that reorder text are escaped too.
///
/// `{:?}` would do almost the same, but its escapes (`\u{1b}`) are Rust's, which the reader need not know.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing into a string does not fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Control characters, and characters without a width that join or reorder others.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_characters_are_escaped_as_in_json_not_as_in_rust() {
        let check = |text: &str, expected: &str| assert_eq!(quote(text), expected);
        check("plain name", "\"plain name\"");
        check("Überweisung 🚀", "\"Überweisung 🚀\"");
        check("a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\"");
        check("line\nbreak\t", "\"line\\nbreak\\t\"");
        check("\u{1b}[2J\u{9b}", "\"\\u001b[2J\\u009b\"");
        check("a\u{202e}b\u{e0041}", "\"a\\u202eb\\udb40\\udc41\"");
    }

    proptest! {
        #[test]
        fn quoted_text_is_json_of_itself(text in any::<String>()) {
            let quoted = quote(&text);
            prop_assert!(!quoted.contains(is_invisible));
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
        }
    }
}
