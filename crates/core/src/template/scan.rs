//! Finds the holes in a string. Does not look into them beyond their quotes.

pub(super) enum Piece<'s> {
    /// Not empty, and without the backslashes that kept braces literal.
    Literal(String),
    Hole {
        source: &'s str,
        offset: usize,
    },
}

/// The `{{` at this byte has no end.
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

/// Bytes before the `}}` that ends a hole; braces between quotes do not.
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
    // A quote that is not closed hides the end: let the expression's own parser say so.
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
    fn holes_and_the_text_between_them_are_told_apart() {
        check("", "");
        check("plain } { }} text", "|plain } { }} text|");
        check("{{a}}", "<a>");
        check("{{a}}{{ b }}", "<a>< b >");
        check("x {{a}} y", "|x |<a>| y|");
        check("{{a}}}", "<a>|}|");
        check(r#"{"a":{"b":{{c}}}}"#, r#"|{"a":{"b":|<c>|}}|"#);
    }

    #[test]
    fn braces_between_quotes_do_not_end_a_hole() {
        check(r#"{{ "}}" }}!"#, r#"< "}}" >|!|"#);
        check(r#"{{ 'it\'s }}' }}"#, r#"< 'it\'s }}' >"#);
        check(r#"{{ "unclosed }} x"#, r#"< "unclosed >| x|"#);
    }

    #[test]
    fn a_backslash_keeps_braces_literal_and_counts_only_there() {
        check(r"\{{a}}", "|{{a}}|");
        check(r"\\{{a}}", r"|\|<a>");
        check(r"\\\{{a}}", r"|\{{a}}|");
        check(r"C:\dir\{a} \n", r"|C:\dir\{a} \n|");
        check(r"\{{{{a}}", "|{{|<a>");
    }

    #[test]
    fn a_hole_without_end_is_reported_where_it_begins() {
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
