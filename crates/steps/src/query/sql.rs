//! A minimal SQL scanner: finds quoted text, comments, a statement's first keyword and `:name` parameters.

/// Keywords that a step's statement may not begin with. The step owns the transaction, and anything that outlives a
/// statement (settings, prepared statements, notifications, cursors) would affect the next user of the connection. This
/// list is not what enforces read-only access; it only gives a better message.
const FORBIDDEN: [&str; 24] = [
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

/// Returns the first keyword if a step's statement may not begin with it.
pub fn forbidden_keyword(sql: &str) -> Option<String> {
    let start = segments(sql).find_map(|segment| match segment {
        Segment::Plain(text) => Some(text.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '('))
            .filter(|text| !text.is_empty()),
        Segment::Comment(_) => None,
        Segment::Quoted(text) => Some(text),
    })?;
    let end = start.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(start.len());
    let word = start[..end].to_ascii_lowercase();
    FORBIDDEN.contains(&word.as_str()).then(|| word.to_ascii_uppercase())
}

/// Whether the statement has numbered parameters, which would clash with the numbers given to names.
pub fn has_numbered_params(sql: &str) -> bool {
    highest_number(sql).is_some()
}

/// The greatest number of a parameter such as `$1`.
pub fn highest_number(sql: &str) -> Option<usize> {
    let plain = segments(sql).filter_map(|segment| match segment {
        Segment::Plain(text) => Some(text),
        Segment::Comment(_) | Segment::Quoted(_) => None,
    });
    plain.flat_map(numbers).max()
}

/// The numbers of the parameters in text without quotes and comments.
fn numbers(text: &str) -> impl Iterator<Item = usize> {
    let signs = text.match_indices('$').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let begins = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    signs.filter(move |(before, _)| begins(before)).filter_map(|(_, after)| {
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after[..end].parse().ok()
    })
}

/// How many `?` stand for parameters, as in SQLite. `None` if some have numbers. In PostgreSQL, `?` is an operator.
pub fn question_marks(sql: &str) -> Option<usize> {
    let mut count = 0;
    for segment in segments(sql) {
        let Segment::Plain(text) = segment else { continue };
        for (at, _) in text.match_indices('?') {
            if text[at + 1..].starts_with(|c: char| c.is_ascii_digit()) {
                return None;
            }
            count += 1;
        }
    }
    Some(count)
}

/// Replaces `:name` by `$1`, `$2`, … and returns the names in that order.
pub fn number_params(sql: &str) -> (String, Vec<String>) {
    let (mut out, mut names) = (String::with_capacity(sql.len()), Vec::<String>::new());
    for segment in segments(sql) {
        let mut rest = match segment {
            Segment::Plain(text) => text,
            Segment::Comment(text) | Segment::Quoted(text) => {
                out.push_str(text);
                continue;
            }
        };
        while let Some(at) = rest.find(':') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
            let name = &after[..end];
            // `::` is a cast, and array slices contain numbers.
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

enum Segment<'a> {
    Plain(&'a str),
    Comment(&'a str),
    Quoted(&'a str),
}

/// Splits a statement. An unterminated quote or comment extends to the end.
fn segments(sql: &str) -> impl Iterator<Item = Segment<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = &sql[from..];
        if rest.is_empty() {
            return None;
        }
        // The text before a quote decides its meaning, so this needs the whole statement.
        let (segment, length) = match comment_or_quote(sql, from) {
            Some(segment) => segment,
            None => {
                let starts = |at: &usize| comment_or_quote(sql, from + at).is_some();
                let end = rest.char_indices().map(|(at, _)| at).skip(1).find(starts).unwrap_or(rest.len());
                (Segment::Plain(&rest[..end]), end)
            }
        };
        from += length;
        Some(segment)
    })
}

/// The comment or quoted text that begins at `at`, and its length.
fn comment_or_quote(sql: &str, at: usize) -> Option<(Segment<'_>, usize)> {
    let text = &sql[at..];
    let until = |open: usize, end: &str| text[open..].find(end).map_or(text.len(), |found| open + found + end.len());
    let before = sql[..at].chars().next_back();
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let length = match text.as_bytes().first()? {
        b'-' if text.starts_with("--") => return Some(comment(text, until(2, "\n"))),
        b'/' if text.starts_with("/*") => return Some(comment(text, block_comment_length(text))),
        b'\'' => {
            // `E'…'` has backslash escapes.
            let mut word = sql[..at].chars().rev();
            let escapes = matches!(word.next(), Some('e' | 'E')) && !word.next().is_some_and(in_word);
            quoted_length(text, '\'', escapes)
        }
        b'"' => quoted_length(text, '"', false),
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
    Some((Segment::Quoted(&text[..length]), length))
}

fn comment(text: &str, length: usize) -> (Segment<'_>, usize) {
    (Segment::Comment(&text[..length]), length)
}

/// The length of a block comment. PostgreSQL's comments nest.
fn block_comment_length(text: &str) -> usize {
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

/// The length of a quoted text. A quote within it is doubled, or escaped if `escapes`.
fn quoted_length(text: &str, quote: char, escapes: bool) -> usize {
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
    fn named_parameters_are_numbered() {
        let check = |sql: &str, expected: &str, names: &[&str]| {
            let (out, found) = number_params(sql);
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
    fn numbered_parameters_are_found_only_outside_names_texts_and_comments() {
        let number_params = ["select $1", "select x+$12, :a", "select 'a' || $1"];
        assert!(number_params.iter().all(|sql| has_numbered_params(sql)));
        let others = ["select :a", "select a$1", "select '$1', \"$1\" -- $1", "select $$ $1 $$", "select $t$1$t$"];
        assert!(!others.iter().any(|sql| has_numbered_params(sql)));
        assert_eq!(highest_number("select $2, $10, '$11' -- $12"), Some(10));
        assert_eq!(question_marks("select ?, '?', \"?\" /* ? */ where a = ?"), Some(2));
        assert_eq!(question_marks("select ?1, ?1"), None);
    }

    #[test]
    fn a_forbidden_statement_is_recognised_by_its_first_keyword() {
        for sql in ["COMMIT", " \n-- so\n/* and /* so */ */ Rollback", ";;begin", "set role x", "PREPARE a as select 1"]
        {
            assert!(forbidden_keyword(sql).is_some(), "{sql}");
        }
        for sql in
            ["select 1", "", "-- commit", "settle", "'commit'", "with x as (select 1) select * from x", "(values (1))"]
        {
            assert!(forbidden_keyword(sql).is_none(), "{sql}");
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
