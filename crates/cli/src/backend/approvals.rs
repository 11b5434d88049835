//! Open approvals and their answers.

use super::{Backend, Directory, or_refusal};
use crate::client::{Call, Refusal};
use crate::commands::Exit;
use serde_json::json;
use stepwell_engine::commands::Decision;
use stepwell_server::view::*;
use stepwell_store::RunId;

/// Approvals per page.
const PAGE: u32 = 500;

impl Backend {
    /// All open approvals, oldest first.
    pub async fn approvals(&self) -> anyhow::Result<Vec<ApprovalView>> {
        let mut all = Vec::new();
        match self {
            Backend::Server(client) => {
                let mut cursor: Option<String> = None;
                loop {
                    let call = Call::get(&["approvals"]).query("limit", Some(PAGE)).query("cursor", cursor.as_ref());
                    let page: Page<ApprovalView> = client.body(call).await?;
                    all.extend(page.data);
                    cursor = page.next;
                    if cursor.is_none() {
                        return Ok(all);
                    }
                }
            }
            Backend::Directory(Directory { engine, caller }) => {
                let mut after: Option<(RunId, String)> = None;
                loop {
                    let (open, next) = or_refusal(engine.gates(caller).list(after, PAGE).await)?;
                    all.extend(open.into_iter().map(ApprovalView::from));
                    after = next;
                    if after.is_none() {
                        return Ok(all);
                    }
                }
            }
        }
    }

    pub async fn approval(&self, run: &str, step: &str) -> anyhow::Result<ApprovalView> {
        match self {
            Backend::Server(client) => client.data(Call::get(&["runs", run, "steps", step, "approval"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.gates(caller).get(run, step).await)?.into())
            }
        }
    }

    pub async fn answer(&self, run: &str, step: &str, decision: Decision) -> anyhow::Result<Run> {
        match self {
            Backend::Server(client) => {
                let verb = if decision.approve { "approve" } else { "deny" };
                let body = json!({"comment": decision.comment, "data": decision.data, "digest": decision.digest,
                                  "input": decision.input});
                client.data(Call::post(&["runs", run, "steps", step, verb]).json(body)).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.gates(caller).answer(run, step, decision).await)?;
                self.run(run).await
            }
        }
    }

    /// The address of a page for answering. Only a server has pages.
    pub async fn link(&self, run: &str, step: &str, user: Option<&str>) -> anyhow::Result<LinkView> {
        match self {
            Backend::Server(client) => {
                client.data(Call::post(&["runs", run, "steps", step, "link"]).json(json!({"user": user}))).await
            }
            Backend::Directory(_) => {
                let text = "links need a server: start one with `stepwell serve`, or name it with --url";
                Err(Refusal::new(Exit::Failed, text).into())
            }
        }
    }
}
