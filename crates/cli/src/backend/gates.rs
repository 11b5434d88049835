//! What people are asked, and the policies that have them asked.

use super::{Backend, Directory, told};
use crate::client::{Call, Refusal};
use crate::commands::Exit;
use serde_json::json;
use stepwell_engine::commands::Decision;
use stepwell_server::view::*;
use stepwell_store::RunId;

/// Asked for in one go.
const PAGE: u32 = 500;

impl Backend {
    /// All that is open, oldest first.
    pub async fn approvals(&self) -> anyhow::Result<Vec<ApprovalView>> {
        let mut all = Vec::new();
        match self {
            Backend::Server(client) => {
                let mut cursor: Option<String> = None;
                loop {
                    let call = Call::get(&["approvals"]).query("limit", Some(PAGE)).query("cursor", cursor.as_ref());
                    let page: Page<ApprovalView> = client.whole(call).await?;
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
                    let (open, next) = told(engine.gates(caller).list(after, PAGE).await)?;
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
            Backend::Server(client) => client.ask(Call::get(&["runs", run, "steps", step, "approval"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(told(engine.gates(caller).get(run, step).await)?.into())
            }
        }
    }

    pub async fn answer(&self, run: &str, step: &str, decision: Decision) -> anyhow::Result<Run> {
        match self {
            Backend::Server(client) => {
                let verb = if decision.approve { "approve" } else { "deny" };
                let body = json!({"comment": decision.comment, "data": decision.data, "digest": decision.digest});
                client.ask(Call::post(&["runs", run, "steps", step, verb]).json(body)).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                told(engine.gates(caller).answer(run, step, decision).await)?;
                self.run(run).await
            }
        }
    }

    /// The address of a page on which somebody can answer. Only a server has pages.
    pub async fn link(&self, run: &str, step: &str, user: Option<&str>) -> anyhow::Result<LinkView> {
        match self {
            Backend::Server(client) => {
                client.ask(Call::post(&["runs", run, "steps", step, "link"]).json(json!({"user": user}))).await
            }
            Backend::Directory(_) => {
                let text = "links lead to a server: start one with `stepwell serve`, or name it with --url";
                Err(Refusal::new(Exit::BadInput, text).into())
            }
        }
    }

    pub async fn policies(&self) -> anyhow::Result<Vec<PolicyView>> {
        match self {
            Backend::Server(client) => Ok(client.whole::<Page<PolicyView>>(Call::get(&["policies"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(told(engine.policies(caller).list().await)?.into_iter().map(PolicyView::from).collect())
            }
        }
    }

    pub async fn put_policy(&self, name: &str, policy: PolicyRequest) -> anyhow::Result<PolicyView> {
        match self {
            Backend::Server(client) => client.ask(Call::put(&["policies", name]).json(json!(policy))).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(told(engine.policies(caller).put(name, policy.into()).await)?.into())
            }
        }
    }

    pub async fn remove_policy(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.tell(Call::delete(&["policies", name])).await,
            Backend::Directory(Directory { engine, caller }) => told(engine.policies(caller).remove(name).await),
        }
    }
}
