//! Commands for many runs.

use super::super::Runs;
use super::{Retry, RunQuery};
use crate::access::Right;
use crate::error::Error;

/// Maximum number of runs per call.
const MAX_RUNS: usize = 10_000;

const PAGE_SIZE: u32 = 500;

/// The outcome of a command for many runs.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BulkOutcome {
    pub done: Vec<String>,
    /// The runs for which it was refused, with the reason.
    pub refused: Vec<(String, String)>,
    /// Whether there are more runs: the caller has to repeat the command.
    pub more: bool,
}

/// The command for each run.
#[derive(Clone, Copy)]
enum Action<'a> {
    Cancel(Option<&'a str>),
    Retry(Retry),
}

impl Runs<'_> {
    /// Cancels all open runs that match. Needs the right to run.
    pub async fn cancel_all(&self, query: RunQuery, reason: Option<&str>) -> Result<BulkOutcome, Error> {
        self.caller.check(Right::Run)?;
        let open = ["scheduled", "queued", "running", "paused"].map(String::from).to_vec();
        let query = RunQuery { status: restrict(query.status, open), ..query };
        self.each(query, Action::Cancel(reason)).await
    }

    /// Retries all matching runs that did not complete. Needs the right to run.
    pub async fn retry_all(&self, query: RunQuery, retry: Retry) -> Result<BulkOutcome, Error> {
        self.caller.check(Right::Run)?;
        let ended = ["failed", "cancelled", "timeout"].map(String::from).to_vec();
        let query = RunQuery { status: restrict(query.status, ended), ..query };
        self.each(query, Action::Retry(retry)).await
    }

    async fn each(&self, query: RunQuery, action: Action<'_>) -> Result<BulkOutcome, Error> {
        let mut outcome = BulkOutcome::default();
        let mut before = query.before;
        // The requested statuses exclude all runs that the command applies to.
        if query.status.is_empty() {
            return Ok(outcome);
        }
        loop {
            let page = self.list(RunQuery { before, limit: PAGE_SIZE, ..query.clone() }).await?;
            before = page.last().map(|run| run.id);
            let last = page.len() < PAGE_SIZE as usize;
            for run in page {
                if outcome.done.len() + outcome.refused.len() >= MAX_RUNS {
                    outcome.more = true;
                    return Ok(outcome);
                }
                let done = match action {
                    Action::Cancel(reason) => self.cancel(&run.public, reason).await,
                    Action::Retry(retry) => self.retry(&run.public, retry).await,
                };
                match done {
                    Ok(()) => outcome.done.push(run.public),
                    Err(error @ (Error::Unavailable(_) | Error::Forbidden { .. })) => return Err(error),
                    Err(error) => outcome.refused.push((run.public, error.to_string())),
                }
            }
            if last {
                return Ok(outcome);
            }
        }
    }
}

/// The requested statuses that the command applies to; all of these if none were requested.
fn restrict(requested: Vec<String>, applicable: Vec<String>) -> Vec<String> {
    if requested.is_empty() {
        applicable
    } else {
        requested.into_iter().filter(|status| applicable.contains(status)).collect()
    }
}
