//! Channels for notifications.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn channels(&self) -> anyhow::Result<Vec<ChannelView>> {
        match self {
            Backend::Server(client) => Ok(client.body::<Page<ChannelView>>(Call::get(&["channels"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.channels(caller).list().await)?.into_iter().map(ChannelView::from).collect())
            }
        }
    }

    pub async fn create_channel(&self, new: NewChannelRequest) -> anyhow::Result<NewChannelView> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["channels"]).json(json!(new))).await,
            Backend::Directory(Directory { engine, caller }) => {
                let (channel, secret) = or_refusal(engine.channels(caller).create(new.into()).await)?;
                Ok(NewChannelView { is: channel.into(), secret })
            }
        }
    }

    pub async fn remove_channel(&self, channel: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["channels", channel])).await,
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.channels(caller).remove(channel).await)
            }
        }
    }

    pub async fn test_channel(&self, channel: &str) -> anyhow::Result<TestView> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["channels", channel, "test"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.channels(caller).test(channel).await)?.into())
            }
        }
    }
}
