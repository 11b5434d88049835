//! Users and keys. On a directory the local user may change them, so that they can create a key after losing all keys.

use super::{Backend, Directory, or_refusal};
use crate::client::{Call, Refusal};
use crate::commands::Exit;
use serde_json::json;
use stepwell_engine::commands::{KeyChange, NewKey, NewUser, UserChange};
use stepwell_server::view::*;

/// The user that the first start of a server creates.
const FIRST: &str = "admin";

impl Directory {
    /// Fails if there are no users. The first start of a server creates the first user and its keys only if there are
    /// none, so no other user may be created before.
    async fn require_users(&self) -> anyhow::Result<()> {
        if or_refusal(self.engine.identity().has_users().await)? {
            return Ok(());
        }
        let text = "there are no users yet: the first `stepwell serve` creates one, with keys";
        Err(Refusal::new(Exit::BadInput, text).into())
    }
}

impl Backend {
    pub async fn keys(&self) -> anyhow::Result<Vec<KeyView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<KeyView>>(Call::get(&["keys"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.keys(caller).list().await)?.into_iter().map(KeyView::from).collect())
            }
        }
    }

    pub async fn create_key(&self, new: NewKeyRequest) -> anyhow::Result<NewKeyView> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["keys"]).json(json!(new))).await,
            Backend::Directory(directory) => {
                directory.require_users().await?;
                let NewKeyRequest { user, name, agent, grants, expires_at } = new;
                let user = user.or_else(|| Some(FIRST.to_string()));
                let new = NewKey { user, name, agent, grants, expires: expires_at.map(|at| at.0) };
                let (made, key) = or_refusal(directory.engine.keys(&directory.caller).create(new).await)?;
                Ok(NewKeyView { key, is: made.into() })
            }
        }
    }

    pub async fn pause_key(&self, id: &str, paused: bool) -> anyhow::Result<KeyView> {
        match self {
            Backend::Server(client) => client.data(Call::patch(&["keys", id]).json(json!({"paused": paused}))).await,
            Backend::Directory(Directory { engine, caller }) => {
                let to = KeyChange { name: None, paused: Some(paused) };
                Ok(or_refusal(engine.keys(caller).change(id, to).await)?.into())
            }
        }
    }

    pub async fn revoke_key(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["keys", id])).await,
            Backend::Directory(Directory { engine, caller }) => or_refusal(engine.keys(caller).revoke(id).await),
        }
    }

    pub async fn users(&self) -> anyhow::Result<Vec<UserView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<UserView>>(Call::get(&["users"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.users(caller).list().await)?.into_iter().map(UserView::from).collect())
            }
        }
    }

    pub async fn user(&self, user: &str) -> anyhow::Result<UserView> {
        match self {
            Backend::Server(client) => client.data(Call::get(&["users", user])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.users(caller).get(user).await)?.into())
            }
        }
    }

    pub async fn create_user(&self, new: NewUserRequest) -> anyhow::Result<UserView> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["users"]).json(json!(new))).await,
            Backend::Directory(directory) => {
                directory.require_users().await?;
                let NewUserRequest { name, roles, grants } = new;
                let new = NewUser { name, roles, grants };
                Ok(or_refusal(directory.engine.users(&directory.caller).create(new).await)?.into())
            }
        }
    }

    pub async fn change_user(&self, user: &str, to: UserChangeRequest) -> anyhow::Result<UserView> {
        match self {
            Backend::Server(client) => client.data(Call::patch(&["users", user]).json(json!(to))).await,
            Backend::Directory(Directory { engine, caller }) => {
                let UserChangeRequest { roles, grants, disabled } = to;
                let to = UserChange { roles, grants, disabled };
                Ok(or_refusal(engine.users(caller).change(user, to).await)?.into())
            }
        }
    }
}
