//! Finds the holes in a string. Of their content it only tracks quotes.

pub(super) enum Piece<'s> {
    /// Not empty, and without the backslashes that escaped braces.
    Literal(String),
    Hole {
        source: &'s str,
        offset: usize,
    },
}

/// The `{{` at this byte is not closed.
pub(super) struct Unclosed {
    pub at: usize,
}

pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Unclosed> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut from = 0;
    while let Some(length) = text[from..].find("{{") {
        let at = from + length;
        let before = &text[from..at];
        let plain = before.trim_end_matches('\\');
        let backslashes = before.len() - plain.len();
        literal.push_str(plain);
        literal.push_str(&"\\".repeat(backslashes / 2));
        if backslashes % 2 == 1 {
            literal.push_str("{{");
            from = at + 2;
            continue;
        }
        let offset = at + 2;
        let source = &text[offset..][..hole_length(&text[offset..]).ok_or(Unclosed { at })?];
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Hole { source, offset });
        from = offset + source.len() + 2;
    }
    literal.push_str(&text[from..]);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// The number of bytes before the `}}` that ends a hole; braces in quotes do not end it.
fn hole_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], quote) {
            (b'\\', Some(_)) => at += 1,
            (b, Some(open)) if b == open => quote = None,
            (b @ (b'"' | b'\''), None) => quote = Some(b),
            (b'}', None) if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    // An unclosed quote hides the end: let the expression parser report it.
    quote.and_then(|_| text.find("}}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Literals between bars, holes between angle brackets.
    fn shown(text: &str) -> String {
        match pieces(text) {
            Ok(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Literal(text) => format!("|{text}|"),
                    Piece::Hole { source, .. } => format!("<{source}>"),
                })
                .collect(),
            Err(Unclosed { at }) => format!("unclosed at {at}"),
        }
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(shown(text), expected, "{text}");
    }

    #[test]
    fn text_splits_into_holes_and_literals() {
        check("", "");
        check("plain } { }} text", "|plain } { }} text|");
        check("{{a}}", "<a>");
        check("{{a}}{{ b }}", "<a>< b >");
        check("x {{a}} y", "|x |<a>| y|");
        check("{{a}}}", "<a>|}|");
        check(r#"{"a":{"b":{{c}}}}"#, r#"|{"a":{"b":|<c>|}}|"#);
    }

    #[test]
    fn braces_in_quotes_do_not_end_a_hole() {
        check(r#"{{ "}}" }}!"#, r#"< "}}" >|!|"#);
        check(r#"{{ 'it\'s }}' }}"#, r#"< 'it\'s }}' >"#);
        check(r#"{{ "unclosed }} x"#, r#"< "unclosed >| x|"#);
    }

    #[test]
    fn a_backslash_escapes_braces_and_is_literal_elsewhere() {
        check(r"\{{a}}", "|{{a}}|");
        check(r"\\{{a}}", r"|\|<a>");
        check(r"\\\{{a}}", r"|\{{a}}|");
        check(r"C:\dir\{a} \n", r"|C:\dir\{a} \n|");
        check(r"\{{{{a}}", "|{{|<a>");
    }

    #[test]
    fn an_unclosed_hole_is_reported_at_its_start() {
        check("abc {{ def", "unclosed at 4");
        check("{{a}} {{", "unclosed at 6");
        check("{{ 'a }", "unclosed at 0");
    }

    proptest! {
        #[test]
        fn any_text_can_be_written_with_escapes(text in r"[\\{}a ]{0,12}") {
            // Double the backslashes before braces, then escape the braces.
            let mut escaped = String::new();
            let mut rest = text.as_str();
            while let Some(at) = rest.find("{{") {
                let plain = rest[..at].trim_end_matches('\\');
                escaped += plain;
                escaped += &"\\".repeat(2 * (at - plain.len()) + 1);
                escaped += "{{";
                rest = &rest[at + 2..];
            }
            escaped += rest;
            let expected = if text.is_empty() { String::new() } else { format!("|{text}|") };
            prop_assert_eq!(shown(&escaped), expected);
        }
    }
}
