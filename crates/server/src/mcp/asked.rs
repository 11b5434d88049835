//! Gates asked in the answer of a call, for clients of the newest revision that can ask their user and have no tasks. The
//! client repeats the call with the answers and the id of the run.

use super::call::Call;
use super::runs::{self, RunState};
use super::{Client, gates, tasks};
use crate::error::Problem;
use rmcp::model::{CallToolResponse, InputRequests, InputRequiredResult, InputResponses};
use std::collections::BTreeSet;

/// The questions of a run that this caller may answer and this client can put.
fn questions(state: &RunState, client: Client) -> InputRequests {
    let open = state.approvals.iter().filter(|gate| client.asks && gate.mine);
    open.filter_map(|gate| Some((gates::key(gate), gates::question(gate)?))).collect()
}

/// The result of a call that started a run, or the questions that the run waits for.
pub fn outcome(state: &RunState, client: Client) -> CallToolResponse {
    let questions = questions(state, client);
    match questions.is_empty() {
        true => state.outcome().into(),
        false => InputRequiredResult::new(Some(questions), Some(state.run.id.clone())).into(),
    }
}

impl Call<'_> {
    /// Answers the questions of a run, and goes on with it. The run is the client's word: rights are checked as always.
    pub async fn answered(self, run: &str, answers: InputResponses) -> Result<CallToolResponse, Problem> {
        let asked: BTreeSet<String> = answers.keys().cloned().collect();
        tasks::update(self.app, self.caller, run, answers).await?;
        runs::wait(self.app, self.caller, run, runs::LONGEST_WAIT).await?;
        let state = runs::read(self.app, self.caller, run).await?;
        let open = questions(&state, self.client);
        // What the user put off, or answered with something that is refused, is not asked again at once.
        if open.keys().any(|key| asked.contains(key)) {
            let mut result = state.outcome();
            if let Some(refusal) = self.app.engine.gates(self.caller).last_refusal(run).await? {
                let text = format!("The answer to {:?} was refused: {}", gates::path(&refusal.step), refusal.reason);
                result.content.insert(0, rmcp::model::ContentBlock::text(text));
            }
            return Ok(result.into());
        }
        Ok(outcome(&state, self.client))
    }
}
