//! One command for many runs.

use super::super::Runs;
use super::{Retry, RunQuery};
use crate::access::Right;
use crate::error::Error;

/// Runs that one call may be about.
const MOST_AT_ONCE: usize = 10_000;

const PAGE: u32 = 500;

/// What came of a call about many runs.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Bulk {
    pub done: Vec<String>,
    /// Those that were refused, and why.
    pub refused: Vec<(String, String)>,
    /// There are more: ask again.
    pub more: bool,
}

/// What is done to each of many runs.
#[derive(Clone, Copy)]
enum Act<'a> {
    Cancel(Option<&'a str>),
    Retry(Retry),
}

impl Runs<'_> {
    /// Cancels every run that fits and has not ended.
    pub async fn cancel_all(&self, query: RunQuery, reason: Option<&str>) -> Result<Bulk, Error> {
        self.caller.check(Right::Run)?;
        let open = ["queued", "running", "paused"].map(String::from).to_vec();
        let query = RunQuery { status: narrowed(query.status, open), ..query };
        self.each(query, Act::Cancel(reason)).await
    }

    /// Retries every run that fits and did not complete.
    pub async fn retry_all(&self, query: RunQuery, retry: Retry) -> Result<Bulk, Error> {
        self.caller.check(Right::Run)?;
        let over = ["failed", "cancelled", "timeout"].map(String::from).to_vec();
        let query = RunQuery { status: narrowed(query.status, over), ..query };
        self.each(query, Act::Retry(retry)).await
    }

    async fn each(&self, query: RunQuery, act: Act<'_>) -> Result<Bulk, Error> {
        let mut bulk = Bulk::default();
        let mut before = query.before;
        // No status fits: nothing is meant.
        if query.status.is_empty() {
            return Ok(bulk);
        }
        loop {
            let page = self.list(RunQuery { before, limit: PAGE, ..query.clone() }).await?;
            before = page.last().map(|run| run.id);
            let last = page.len() < PAGE as usize;
            for run in page {
                if bulk.done.len() + bulk.refused.len() >= MOST_AT_ONCE {
                    bulk.more = true;
                    return Ok(bulk);
                }
                let done = match act {
                    Act::Cancel(reason) => self.cancel(&run.public, reason).await,
                    Act::Retry(retry) => self.retry(&run.public, retry).await,
                };
                match done {
                    Ok(()) => bulk.done.push(run.public),
                    Err(error @ (Error::Unavailable(_) | Error::Forbidden { .. })) => return Err(error),
                    Err(error) => bulk.refused.push((run.public, error.to_string())),
                }
            }
            if last {
                return Ok(bulk);
            }
        }
    }
}

/// Those of the asked for that make sense; all of them if nothing was asked for.
fn narrowed(asked: Vec<String>, sensible: Vec<String>) -> Vec<String> {
    if asked.is_empty() { sensible } else { asked.into_iter().filter(|status| sensible.contains(status)).collect() }
}
