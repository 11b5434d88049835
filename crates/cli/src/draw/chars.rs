//! The user's own text, made safe to print and measured in terminal columns.
//!
//! Widths are a deliberate approximation: East Asian and emoji characters count two, combining marks none.

/// One line without control characters, direction overrides or invisible characters.
///
/// Line breaks and tabs become a space. Characters that could control a terminal or reorder a line become `�`,
/// so that an attempt is visible.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if c.is_control() || reorders(c) => out.push('\u{fffd}'),
            c if invisible(c) => {}
            c => out.push(c),
        }
    }
    out.trim().to_owned()
}

/// Several lines for a terminal, with characters that control it, reorder text or are not seen escaped.
pub fn plain(text: &str) -> String {
    stepwell_core::unseen::escaped(text).into_owned()
}

/// Cleaned, and cut to at most `max` columns; what was cut ends in `…`.
pub fn fit(text: &str, max: usize) -> String {
    let text = clean(text);
    // Marks that take no column could otherwise make one name endless.
    let most = max * 4;
    if width(&text) <= max && text.chars().count() <= most {
        return text;
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars().take(most) {
        used += columns(c);
        if used >= max {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Columns `text` takes in a terminal.
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Cleaned, and escaped for XML text and attribute values.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Characters that may not stand raw in any output that a terminal shows.
pub fn unprintable(c: char) -> bool {
    c.is_control() || reorders(c) || invisible(c)
}

pub fn columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x0483..=0x0489 | 0x0591..=0x05bd | 0x064b..=0x065f | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f
        | 0x231a..=0x231b
        | 0x23e9..=0x23ec
        | 0x25fd..=0x25fe
        | 0x2614..=0x2615
        | 0x2648..=0x2653
        | 0x26a1
        | 0x26aa..=0x26ab
        | 0x26bd..=0x26be
        | 0x26d4
        | 0x2705
        | 0x270a..=0x270b
        | 0x2728
        | 0x274c
        | 0x274e
        | 0x2753..=0x2757
        | 0x2795..=0x2797
        | 0x2b1b..=0x2b1c
        | 0x2b50
        | 0x2b55
        | 0x2e80..=0x303e
        | 0x3041..=0x4dbf
        | 0x4e00..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

fn reorders(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// No visible shape of their own; joiners and variation selectors would also make widths a guess. The last
/// two of each plane are not characters, and XML refuses them.
fn invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{2028}' | '\u{2029}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    ) || u32::from(c) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_becomes_harmless_and_stays_visible() {
        assert_eq!(clean("\u{1b}[2Jgone\u{7}"), "\u{fffd}[2Jgone\u{fffd}");
        assert_eq!(clean("a\r\n\tb\u{200b}c"), "a bc");
        assert_eq!(clean("\u{202e}evil"), "\u{fffd}evil");
    }

    #[test]
    fn long_text_is_cut_to_its_columns_and_says_so() {
        assert_eq!(fit("charge-card", 11), "charge-card");
        assert_eq!(fit("charge-card", 8), "charge-…");
        assert_eq!(fit("注文を処理する", 8), "注文を…");
        assert_eq!(width(&fit(&"長".repeat(50), 20)), 19);
        assert!(fit(&format!("e{}", "\u{301}".repeat(900)), 20).chars().count() <= 81);
    }

    #[test]
    fn markup_is_escaped_for_xml() {
        assert_eq!(xml("<a href=\"x\">&'\u{0}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}");
    }

    #[test]
    fn wide_characters_count_two() {
        assert_eq!(width("注文"), 4);
        assert_eq!(width("🚀 go"), 5);
        assert_eq!(width("e\u{301}"), 1);
    }
}
