//! Channels for notifications.

use super::{Backend, Directory, told};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn channels(&self) -> anyhow::Result<Vec<ChannelView>> {
        match self {
            Backend::Server(client) => Ok(client.whole::<Page<ChannelView>>(Call::get(&["channels"])).await?.data),
            Backend::Directory(Directory { engine, caller }) => {
                Ok(told(engine.channels(caller).list().await)?.into_iter().map(ChannelView::from).collect())
            }
        }
    }

    pub async fn create_channel(&self, new: NewChannelRequest) -> anyhow::Result<NewChannelView> {
        match self {
            Backend::Server(client) => client.ask(Call::post(&["channels"]).json(json!(new))).await,
            Backend::Directory(Directory { engine, caller }) => {
                let (channel, secret) = told(engine.channels(caller).create(new.into()).await)?;
                Ok(NewChannelView { is: channel.into(), secret })
            }
        }
    }

    pub async fn remove_channel(&self, channel: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.tell(Call::delete(&["channels", channel])).await,
            Backend::Directory(Directory { engine, caller }) => told(engine.channels(caller).remove(channel).await),
        }
    }

    pub async fn test_channel(&self, channel: &str) -> anyhow::Result<TestView> {
        match self {
            Backend::Server(client) => client.ask(Call::post(&["channels", channel, "test"])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(told(engine.channels(caller).test(channel).await)?.into())
            }
        }
    }
}
