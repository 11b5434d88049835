//! As much of SQL as has to be understood: where text and comments are, the word a statement begins with, and `:name`.

/// Transactions are the step's own, and what outlives a statement (settings, prepared statements, notices, cursors) would
/// be met by whoever gets the connection next. Not the wall that holds a reader back, only the better message.
const REFUSED: [&str; 24] = [
    "abort",
    "begin",
    "close",
    "commit",
    "copy",
    "deallocate",
    "declare",
    "detach",
    "discard",
    "end",
    "execute",
    "fetch",
    "listen",
    "load",
    "move",
    "prepare",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "set",
    "start",
    "unlisten",
    "attach",
];

/// The first word, if no step may begin its statement with it.
pub fn refused(sql: &str) -> Option<String> {
    let start = pieces(sql).find_map(|piece| match piece {
        Piece::Plain(text) => Some(text.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '('))
            .filter(|text| !text.is_empty()),
        Piece::Comment(_) => None,
        Piece::Quoted(text) => Some(text),
    })?;
    let end = start.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(start.len());
    let word = start[..end].to_ascii_lowercase();
    REFUSED.contains(&word.as_str()).then(|| word.to_ascii_uppercase())
}

/// Whether the statement has parameters by number, which names would be mistaken for.
pub fn has_numbers(sql: &str) -> bool {
    let number = |text: &str| {
        let signs = text.match_indices('$').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let begins = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        { signs }.any(|(before, after)| begins(before) && after.starts_with(|c: char| c.is_ascii_digit()))
    };
    pieces(sql).any(|piece| matches!(piece, Piece::Plain(text) if number(text)))
}

/// `:name` turned into `$1`, `$2`, …, and the names in that order.
pub fn numbered(sql: &str) -> (String, Vec<String>) {
    let (mut out, mut names) = (String::with_capacity(sql.len()), Vec::<String>::new());
    for piece in pieces(sql) {
        let mut rest = match piece {
            Piece::Plain(text) => text,
            Piece::Comment(text) | Piece::Quoted(text) => {
                out.push_str(text);
                continue;
            }
        };
        while let Some(at) = rest.find(':') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
            let name = &after[..end];
            // `::` is a cast, and a slice has numbers.
            let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if !is_name || out.ends_with(':') {
                out.push(':');
                rest = after;
                continue;
            }
            let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
            out.push_str(&format!("${}", number + 1));
            rest = &after[end..];
        }
        out.push_str(rest);
    }
    (out, names)
}

enum Piece<'a> {
    Plain(&'a str),
    Comment(&'a str),
    Quoted(&'a str),
}

/// Cuts a statement up. What is not closed goes on to the end.
fn pieces(sql: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = &sql[from..];
        if rest.is_empty() {
            return None;
        }
        // What comes before decides what a quote is, so the whole statement is looked at.
        let (piece, length) = match special(sql, from) {
            Some(piece) => piece,
            None => {
                let starts = |at: &usize| special(sql, from + at).is_some();
                let end = rest.char_indices().map(|(at, _)| at).skip(1).find(starts).unwrap_or(rest.len());
                (Piece::Plain(&rest[..end]), end)
            }
        };
        from += length;
        Some(piece)
    })
}

/// The comment or quoted text that begins there, and how long it is.
fn special(sql: &str, at: usize) -> Option<(Piece<'_>, usize)> {
    let text = &sql[at..];
    let until = |open: usize, end: &str| text[open..].find(end).map_or(text.len(), |found| open + found + end.len());
    let before = sql[..at].chars().next_back();
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let length = match text.as_bytes().first()? {
        b'-' if text.starts_with("--") => return Some(comment(text, until(2, "\n"))),
        b'/' if text.starts_with("/*") => return Some(comment(text, nested(text))),
        b'\'' => {
            // `E'…'` has escapes.
            let mut word = sql[..at].chars().rev();
            let escapes = matches!(word.next(), Some('e' | 'E')) && !word.next().is_some_and(in_word);
            quoted(text, '\'', escapes)
        }
        b'"' => quoted(text, '"', false),
        b'$' if !before.is_some_and(in_word) => {
            let tag = text[1..].find('$').map(|end| &text[..end + 2])?;
            let name = &tag[1..tag.len() - 1];
            let fits = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !fits || name.starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            until(tag.len(), tag)
        }
        _ => return None,
    };
    Some((Piece::Quoted(&text[..length]), length))
}

fn comment(text: &str, length: usize) -> (Piece<'_>, usize) {
    (Piece::Comment(&text[..length]), length)
}

/// Comments of PostgreSQL nest.
fn nested(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// A quote within is doubled, or escaped where that is possible.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && escapes {
            chars.next();
        } else if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return at + 1;
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_where_they_are_parameters() {
        let check = |sql: &str, expected: &str, names: &[&str]| {
            let (out, found) = numbered(sql);
            assert_eq!((out.as_str(), found.as_slice()), (expected, names.map_owned().as_slice()), "{sql}");
        };
        check("select :a, :b, :a", "select $1, $2, $1", &["a", "b"]);
        check("select :a::int, x::text", "select $1::int, x::text", &["a"]);
        check(
            "select ':a', \":a\", E'\\':a', $$:a$$, $t$:a $$ $t$",
            "select ':a', \":a\", E'\\':a', $$:a$$, $t$:a $$ $t$",
            &[],
        );
        check("select 1 -- :a\n, :b /* :c /* :d */ :e */", "select 1 -- :a\n, $1 /* :c /* :d */ :e */", &["b"]);
        check("select a[1:2], x := 1, 'it''s :a'", "select a[1:2], x := 1, 'it''s :a'", &[]);
        check("select :größe_1;", "select $1;", &["größe_1"]);
        check("select ':a", "select ':a", &[]);
        check("select :a$", "select $1$", &["a"]);
    }

    #[test]
    fn a_number_is_a_parameter_only_outside_of_names_texts_and_comments() {
        let numbered = ["select $1", "select x+$12, :a", "select 'a' || $1"];
        assert!(numbered.iter().all(|sql| has_numbers(sql)));
        let others = ["select :a", "select a$1", "select '$1', \"$1\" -- $1", "select $$ $1 $$", "select $t$1$t$"];
        assert!(!others.iter().any(|sql| has_numbers(sql)));
    }

    #[test]
    fn a_statement_that_is_not_a_step_s_own_is_known_by_its_first_word() {
        for sql in ["COMMIT", " \n-- so\n/* and /* so */ */ Rollback", ";;begin", "set role x", "PREPARE a as select 1"]
        {
            assert!(refused(sql).is_some(), "{sql}");
        }
        for sql in
            ["select 1", "", "-- commit", "settle", "'commit'", "with x as (select 1) select * from x", "(values (1))"]
        {
            assert!(refused(sql).is_none(), "{sql}");
        }
    }

    trait Owned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl Owned for &[&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|name| name.to_string()).collect()
        }
    }
}
