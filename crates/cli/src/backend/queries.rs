//! Saved queries.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn queries(&self) -> anyhow::Result<Vec<QueryView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<QueryView>>(Call::get(&["queries"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.queries(caller).list().await)?.into_iter().map(QueryView::from).collect())
            }
        }
    }

    pub async fn put_query(&self, name: &str, to: QueryRequest) -> anyhow::Result<QueryView> {
        match self {
            Backend::Server(client) => client.data(Call::put(&["queries", name]).json(json!(to))).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.queries(caller).put(name, to.into()).await)?.into())
            }
        }
    }

    pub async fn remove_query(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["queries", name])).await,
            Backend::Directory(Directory { engine, caller }) => or_refusal(engine.queries(caller).remove(name).await),
        }
    }
}
