//! Tries policies on past calls before they are set. Changes nothing.

use super::Policies;
use super::input::invalid;
use super::policies::NewPolicy;
use crate::access::Right;
use crate::error::Error;
use crate::execute::{Counts, MAX_POLICIES, PolicyLog, Trial};
use crate::run::drive;
use std::collections::BTreeMap;
use stepwell_core::time::{Millis, Time};
use stepwell_store::RunFilter;

/// Runs and calls that one test looks at: the newest.
pub const MAX_RUNS: u64 = 2_000;
pub const MAX_CALLS: u64 = 20_000;
/// The longest time that a test looks back.
const MAX_SINCE: Millis = Millis::from_secs(90 * 24 * 3600);
/// Runs that are listed at once.
const PAGE: u32 = 100;

/// What policies would have done with past calls.
#[derive(Clone, Debug)]
pub struct PolicyTest {
    pub since: Time,
    pub runs: u64,
    pub calls: u64,
    /// Runs whose payloads were erased: their calls are not known.
    pub erased: u64,
    /// Whether these are all runs since then.
    pub is_complete: bool,
    /// What all policies together would have done, each call with the strongest effect.
    pub counts: Counts,
    pub policies: BTreeMap<String, PolicyLog>,
}

impl Policies<'_> {
    /// Tries policies on the calls of the runs that were created in the last `since`. Without candidates, tries those
    /// that are set. Needs the right to administer.
    pub async fn test(
        &self,
        candidates: Option<BTreeMap<String, NewPolicy>>,
        since: Millis,
    ) -> Result<PolicyTest, Error> {
        self.caller.check(Right::Admin)?;
        if since.0 == 0 || since > MAX_SINCE {
            return Err(invalid("since", &format!("must be a duration of up to {MAX_SINCE}")));
        }
        let now = self.rooms.cluster.clock.now();
        let policies = match candidates {
            None => self.list().await?,
            Some(candidates) if candidates.len() > MAX_POLICIES as usize => {
                return Err(invalid("policies", &format!("must be at most {MAX_POLICIES}")));
            }
            Some(candidates) => {
                let named = candidates.into_iter().map(|(name, new)| {
                    let checked = new.checked(&name).map_err(|error| of_candidate(&name, error))?;
                    Ok(checked.named(&name, now, self.caller.name.to_string()))
                });
                named.collect::<Result<_, Error>>()?
            }
        };
        let mut trial = Trial::new(&self.rooms.executor, policies);
        let since = Time(now.0.saturating_sub_unsigned(since.0));
        let (mut runs, mut erased, mut before, mut is_complete) = (0, 0, None, true);
        'pages: loop {
            let filter = RunFilter { since: Some(since), before, ..RunFilter::all(self.caller.org, PAGE) };
            let page = self.rooms.cluster.store.runs(filter).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.id);
            for row in page {
                if runs >= MAX_RUNS {
                    is_complete = false;
                    break 'pages;
                }
                runs += 1;
                if row.erased.is_some() {
                    erased += 1;
                    continue;
                }
                // Purged meanwhile.
                let Some(live) = drive::load(&self.rooms.runner, row.id).await? else { continue };
                if !trial.add(&self.rooms.executor, &live, MAX_CALLS).await? {
                    is_complete = false;
                    break 'pages;
                }
            }
        }
        let Trial { calls, counts, tried: policies, .. } = trial;
        Ok(PolicyTest { since, runs, calls, erased, is_complete, counts, policies })
    }
}

/// The error of a candidate, with its place.
fn of_candidate(name: &str, error: Error) -> Error {
    match error {
        Error::Input { path, message } => Error::Input { path: format!("policies.{name}.{path}"), message },
        other => other,
    }
}
