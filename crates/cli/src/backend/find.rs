//! Run ids as people write them: whole, or a part that only one run has.

use super::{Backend, Directory};
use crate::client::{Client, Refusal};
use crate::commands::Exit;
use crate::describe::listed_run;
use crate::embedded;
use crate::home::Home;
use stepwell_server::view::{Page, RunFilters, RunSummary};

const PREFIX: &str = "run_";
/// Digits of a whole id.
const DIGITS: usize = 32;
/// Digits that the end of an id must have at least. Ids begin with the time, so runs of one minute differ at the end.
const MIN_END: usize = 4;
/// Candidates that are shown.
const SHOWN: usize = 10;

/// A run on the command line: its id, or the beginning or the end of it.
#[derive(Clone, Debug)]
pub struct RunRef(String);

impl From<String> for RunRef {
    fn from(text: String) -> RunRef {
        RunRef(text)
    }
}

impl RunRef {
    pub async fn find(&self, backend: &Backend) -> anyhow::Result<String> {
        self.among(async |filters| backend.runs(&filters).await).await
    }

    pub async fn find_on(&self, client: &Client) -> anyhow::Result<String> {
        self.among(async |filters| super::runs::on_server(client, &filters).await).await
    }

    /// Before an engine is started that executes steps.
    pub async fn find_in(&self, home: &Home) -> anyhow::Result<String> {
        let directory = Directory { engine: embedded::at_rest(home)?, caller: embedded::caller() };
        let found = self.among(async |filters| directory.runs(&filters).await).await;
        directory.engine.shutdown(super::GRACE).await;
        found
    }

    /// The id of the only run that this is a part of. What no run has is returned as it is: the command then reports
    /// what is missing.
    async fn among(
        &self,
        list: impl AsyncFn(RunFilters) -> anyhow::Result<Page<RunSummary>>,
    ) -> anyhow::Result<String> {
        let given = &self.0;
        let Some(part) = part(given) else { return Ok(given.clone()) };
        let mut matches = Matches::new(given, part);
        for tests in [false, true] {
            let mut cursor = None;
            loop {
                let text = Some(part.to_string());
                let filters = RunFilters { q: text, tests: Some(tests), cursor, ..RunFilters::default() };
                let page = match list(filters).await {
                    // Who may not list runs can still name one in full.
                    Err(error) if Refusal::has_code(&error, "forbidden") => return Ok(given.clone()),
                    page => page?,
                };
                page.data.iter().for_each(|run| matches.add(run));
                cursor = page.next;
                if cursor.is_none() || matches.begin.len() > SHOWN {
                    break;
                }
            }
        }
        matches.only()
    }
}

/// The digits to look for; `None` if this is a whole id or cannot be a part of one.
fn part(given: &str) -> Option<&str> {
    let part = given.strip_prefix(PREFIX).unwrap_or(given);
    let digits = !part.is_empty() && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits && part.len() < DIGITS).then_some(part)
}

/// Runs whose id begins or ends with a part. The end counts only if no id begins with it.
struct Matches<'a> {
    given: &'a str,
    part: &'a str,
    begin: Vec<RunSummary>,
    end: Vec<RunSummary>,
}

impl<'a> Matches<'a> {
    fn new(given: &'a str, part: &'a str) -> Matches<'a> {
        Matches { given, part, begin: Vec::new(), end: Vec::new() }
    }

    fn add(&mut self, run: &RunSummary) {
        let digits = run.id.strip_prefix(PREFIX).unwrap_or(&run.id);
        let whole = self.given.starts_with(PREFIX);
        if digits.starts_with(self.part) {
            self.begin.push(run.clone());
        } else if !whole && self.part.len() >= MIN_END && digits.ends_with(self.part) && self.end.len() <= SHOWN {
            self.end.push(run.clone());
        }
    }

    fn only(self) -> anyhow::Result<String> {
        let found = if self.begin.is_empty() { &self.end } else { &self.begin };
        match found.as_slice() {
            [] => Ok(self.given.to_string()),
            [one] => Ok(one.id.clone()),
            several => {
                let mut text = format!("{:?} is part of the ids of several runs:", self.given);
                several.iter().take(SHOWN).for_each(|run| text.push_str(&format!("\n  {}", listed_run(run))));
                if several.len() > SHOWN {
                    text.push_str("\n  and more");
                }
                Err(Refusal::coded(Exit::BadInput, "ambiguous-run", text).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_of_ids_are_looked_up() {
        let check = |given: &str, expected| assert_eq!(part(given), expected, "{given}");
        check("run_019a9", Some("019a9"));
        check("9f31", Some("9f31"));
        check("run_", None);
        check("run_none", None);
        check("..", None);
        check("run_019a9b1c2d3e7f40a1b2c3d4e5f60718", None);
    }
}
