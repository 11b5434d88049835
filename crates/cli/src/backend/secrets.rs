//! Secrets and connections.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn secrets(&self) -> anyhow::Result<Vec<SecretView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<SecretView>>(Call::get(&["secrets"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.secrets(caller).list().await)?.into_iter().map(SecretView::from).collect())
            }
        }
    }

    pub async fn put_secret(&self, name: &str, to: SecretRequest) -> anyhow::Result<SecretView> {
        match self {
            Backend::Server(client) => client.data(Call::put(&["secrets", name]).json(json!(to))).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.secrets(caller).put(name, to.into()).await)?.into())
            }
        }
    }

    pub async fn remove_secret(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["secrets", name])).await,
            Backend::Directory(Directory { engine, caller }) => or_refusal(engine.secrets(caller).remove(name).await),
        }
    }

    pub async fn rotate_secrets(&self) -> anyhow::Result<RotatedView> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["master-key", "rotate"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.secrets(caller).rotate().await)?.into())
            }
        }
    }

    pub async fn connections(&self) -> anyhow::Result<Vec<ConnectionView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<ConnectionView>>(Call::get(&["connections"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.connections(caller).list().await)?.into_iter().map(ConnectionView::from).collect())
            }
        }
    }

    pub async fn put_connection(&self, name: &str, to: ConnectionRequest) -> anyhow::Result<ConnectionView> {
        match self {
            Backend::Server(client) => client.data(Call::put(&["connections", name]).json(json!(to))).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.connections(caller).put(name, to.into()).await)?.into())
            }
        }
    }

    pub async fn remove_connection(&self, name: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["connections", name])).await,
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.connections(caller).remove(name).await)
            }
        }
    }
}
