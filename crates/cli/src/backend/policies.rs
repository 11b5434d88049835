//! Policies for calls.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn policies(&self) -> anyhow::Result<Vec<PolicyView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<PolicyView>>(Call::get(&["policies"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.policies(caller).list().await)?.into_iter().map(PolicyView::from).collect())
            }
        }
    }

    pub async fn put_policy(&self, name: &str, policy: PolicyRequest) -> anyhow::Result<PolicyView> {
        match self {
            Backend::Server(client) => client.data(Call::put(&["policies", name]).json(json!(policy))).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.policies(caller).put(name, policy.into()).await)?.into())
            }
        }
    }

    pub async fn policy_log(&self, name: &str) -> anyhow::Result<PolicyLogView> {
        match self {
            Backend::Server(client) => client.data(Call::get(&["policies", name, "log"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.policies(caller).log(name).await)?.into())
            }
        }
    }

    pub async fn test_policies(&self, request: PolicyTestRequest) -> anyhow::Result<PolicyTestView> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["policy-tests"]).json(json!(request))).await,
            Backend::Directory(Directory { engine, caller }) => {
                let named = |(name, policy): (String, PolicyRequest)| (name, policy.into());
                let policies = request.policies.map(|policies| policies.into_iter().map(named).collect());
                Ok(or_refusal(engine.policies(caller).test(policies, request.since.0).await)?.into())
            }
        }
    }

    pub async fn remove_policy(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["policies", name])).await,
            Backend::Directory(Directory { engine, caller }) => or_refusal(engine.policies(caller).remove(name).await),
        }
    }
}
