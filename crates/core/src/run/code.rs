//! Finds what a code step reads from its context, by scanning its source. The step gets only that, so its cost depends
//! on what it uses and not on what the run has done before.
//!
//! This is a scan, not a parser: it recognises `ctx.name`, `ctx["name"]` and the same below `ctx.tasks`; any other use
//! of `ctx` (`const c = ctx`, `ctx[key]`) requests everything. A word in a string or comment can only add to the
//! result.

use std::collections::BTreeSet;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reads<'c> {
    /// `None` means everything.
    pub variables: Option<BTreeSet<&'c str>>,
    /// Steps below `ctx.tasks`; `None` means all.
    pub tasks: Option<BTreeSet<&'c str>>,
}

impl<'c> Reads<'c> {
    pub fn of(code: &'c str) -> Reads<'c> {
        let (mut variables, mut tasks) = (Some(BTreeSet::new()), Some(BTreeSet::new()));
        let mut rest = code;
        while let Some(at) = rest.find("ctx") {
            let before = rest[..at].chars().next_back();
            let after = &rest[at + 3..];
            rest = after;
            // Part of another word, or a property of another object.
            if before.is_some_and(|c| is_word(c) || c == '.') || after.starts_with(is_word) {
                continue;
            }
            match property(after) {
                None => variables = None,
                Some(("tasks" | "steps", below)) => match (property(below), &mut tasks) {
                    (Some((name, _)), Some(tasks)) => drop(tasks.insert(name)),
                    (None, _) => tasks = None,
                    (_, None) => {}
                },
                Some((name, _)) => {
                    if let Some(variables) = &mut variables {
                        variables.insert(name);
                    }
                }
            }
        }
        if variables.is_none() {
            tasks = None;
        }
        Reads { variables, tasks }
    }

    pub fn variable(&self, name: &str) -> bool {
        self.variables.as_ref().is_none_or(|variables| variables.contains(name))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// `.name`, `?.name`, `["name"]` or `?.["name"]` at the start of `text`, and what follows.
fn property(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let dotted = text.strip_prefix("?.").or_else(|| text.strip_prefix('.')).map(str::trim_start);
    if let Some(text) = dotted.filter(|text| !text.starts_with('[')) {
        let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
        return (end > 0).then(|| text.split_at(end));
    }
    let inside = dotted.unwrap_or(text).strip_prefix('[')?.trim_start();
    let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let (name, after) = inside[1..].split_once(quote)?;
    let after = after.trim_start().strip_prefix(']')?;
    (!name.contains(['\\', '$'])).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_reads_what_its_source_names() {
        let check = |code: &str, variables: Option<&str>, tasks: Option<&str>| {
            let text =
                |set: &Option<BTreeSet<&str>>| set.as_ref().map(|set| Vec::from_iter(set.iter().copied()).join(","));
            let reads = Reads::of(code);
            let expected = (variables.map(String::from), tasks.map(String::from));
            assert_eq!((text(&reads.variables), text(&reads.tasks)), expected, "{code}");
        };
        check("return 1", Some(""), Some(""));
        check("return ctx.input.items.map(x => x.id)", Some("input"), Some(""));
        check("return ctx['odd name'] + ctx?.b", Some("b,odd name"), Some(""));
        check("return ctx.tasks.a.body + ctx.tasks['b-c'].status", Some(""), Some("a,b-c"));
        check("for (const t in ctx.tasks) f(t)", Some(""), None);
        check("const c = ctx; return c.x", None, None);
        check("return ctx[key]", None, None);
        check("const {a, b} = ctx", None, None);
        check("return myctx.a + obj.ctx.b + ctxs.c", Some(""), Some(""));
        check("return `${ctx.a}`", Some("a"), Some(""));
    }
}
