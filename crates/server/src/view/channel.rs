//! Channels, preferences and the delivery of notifications.

use super::{DeliveryStatus, Instant, MessageTopic, OnTimeout};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stepwell_engine::commands::{NewChannel, NotificationPreferences, With};
use stepwell_engine::notify::{Channel, Delivery, Medium, Message, Topic};
use utoipa::ToSchema;

/// Events that people can be notified of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TopicView {
    GateOpened,
    GateEscalated,
    GateAnswered,
    GateExpired,
    RunFailed,
}

impl TopicView {
    /// Test messages and quarantines cannot be chosen.
    fn of(topic: Topic) -> Option<TopicView> {
        match topic {
            Topic::GateOpened => Some(TopicView::GateOpened),
            Topic::GateEscalated => Some(TopicView::GateEscalated),
            Topic::GateAnswered => Some(TopicView::GateAnswered),
            Topic::GateExpired => Some(TopicView::GateExpired),
            Topic::RunFailed => Some(TopicView::RunFailed),
            Topic::RunQuarantined | Topic::Test => None,
        }
    }

    fn all(topics: Vec<Topic>) -> Vec<TopicView> {
        topics.into_iter().filter_map(TopicView::of).collect()
    }
}

impl From<TopicView> for Topic {
    fn from(topic: TopicView) -> Topic {
        match topic {
            TopicView::GateOpened => Topic::GateOpened,
            TopicView::GateEscalated => Topic::GateEscalated,
            TopicView::GateAnswered => Topic::GateAnswered,
            TopicView::GateExpired => Topic::GateExpired,
            TopicView::RunFailed => Topic::RunFailed,
        }
    }
}

fn topics(views: Vec<TopicView>) -> Vec<Topic> {
    views.into_iter().map(Topic::from).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediumView {
    Pushover,
    Webhook,
    Slack,
    Ntfy,
    Email,
}

impl From<Medium> for MediumView {
    fn from(medium: Medium) -> MediumView {
        match medium {
            Medium::Pushover => MediumView::Pushover,
            Medium::Webhook => MediumView::Webhook,
            Medium::Slack => MediumView::Slack,
            Medium::Ntfy => MediumView::Ntfy,
            Medium::Email => MediumView::Email,
        }
    }
}

impl From<MediumView> for Medium {
    fn from(medium: MediumView) -> Medium {
        match medium {
            MediumView::Pushover => Medium::Pushover,
            MediumView::Webhook => Medium::Webhook,
            MediumView::Slack => Medium::Slack,
            MediumView::Ntfy => Medium::Ntfy,
            MediumView::Email => Medium::Email,
        }
    }
}

/// A channel, without its credentials.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChannelView {
    pub id: String,
    pub name: String,
    pub medium: MediumView,
    /// Belongs to the organisation, not to a single user.
    pub organisation: bool,
    /// The owner.
    #[serde(default)]
    pub user: Option<String>,
    /// A shortened target, enough to tell it from others.
    pub target: String,
    pub events: Vec<TopicView>,
    pub created_at: Instant,
    pub created_by: String,
}

impl From<With<Channel>> for ChannelView {
    fn from(With { id, is }: With<Channel>) -> ChannelView {
        ChannelView {
            id,
            name: is.name,
            medium: is.medium.into(),
            organisation: is.user.is_none(),
            user: is.user,
            target: is.target,
            events: TopicView::all(is.events),
            created_at: is.created.into(),
            created_by: is.by,
        }
    }
}

/// A new channel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewChannelView {
    #[serde(flatten)]
    pub is: ChannelView,
    /// `whsec_…`: the key that signs calls of a webhook. Shown only here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Which settings are required depends on the medium.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewChannelRequest {
    pub name: String,
    pub medium: MediumView,
    /// For the organisation, not for yourself.
    #[serde(default)]
    pub organisation: bool,
    /// URL of a webhook or of Slack, or of another server compatible with Pushover or ntfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Pushover's application token, or ntfy's access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Pushover's user or group key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_key: Option<String>,
    /// Topic of ntfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// An email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// All events if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<TopicView>>,
}

impl From<NewChannelRequest> for NewChannel {
    fn from(new: NewChannelRequest) -> NewChannel {
        let NewChannelRequest { name, medium, organisation, url, token, user_key, topic, to, events } = new;
        let (medium, events) = (Some(medium.into()), events.map(topics));
        NewChannel { name, medium, organisation, url, token, user_key, topic, to, events }
    }
}

/// Whether a message was delivered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TestView {
    pub arrived: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<Result<(), String>> for TestView {
    fn from(sent: Result<(), String>) -> TestView {
        TestView { arrived: sent.is_ok(), error: sent.err() }
    }
}

/// Which events you are notified of, and where. Only the given fields are changed.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PreferencesView {
    /// In a connected browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser: Option<Vec<TopicView>>,
    /// By the id of the channel.
    pub channels: BTreeMap<String, Vec<TopicView>>,
}

impl From<NotificationPreferences> for PreferencesView {
    fn from(preferences: NotificationPreferences) -> PreferencesView {
        PreferencesView {
            browser: preferences.browser.map(TopicView::all),
            channels: preferences.channels.into_iter().map(|(id, events)| (id, TopicView::all(events))).collect(),
        }
    }
}

impl From<PreferencesView> for NotificationPreferences {
    fn from(view: PreferencesView) -> NotificationPreferences {
        NotificationPreferences {
            browser: view.browser.map(topics),
            channels: view.channels.into_iter().map(|(id, events)| (id, topics(events))).collect(),
        }
    }
}

/// A message to one channel and its delivery.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NotificationView {
    /// Also the `webhook-id` of a call.
    pub id: String,
    /// The channel's id.
    pub channel: String,
    pub channel_name: String,
    #[serde(default)]
    pub user: Option<String>,
    #[schema(value_type = DeliveryStatus)]
    pub status: String,
    pub attempts: u32,
    /// Why it was not delivered.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub finished_at: Option<Instant>,
    #[serde(flatten)]
    pub message: MessageView,
}

impl From<With<Delivery>> for NotificationView {
    fn from(With { id, is }: With<Delivery>) -> NotificationView {
        NotificationView {
            id,
            channel: is.channel,
            channel_name: is.name,
            user: is.user,
            status: is.progress.name().into(),
            attempts: is.attempts,
            error: is.error,
            finished_at: is.done.map(Instant),
            message: is.message.into(),
        }
    }
}

/// The content of a notification.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageView {
    #[schema(value_type = MessageTopic)]
    pub event: String,
    pub title: String,
    pub workflow: String,
    pub run_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The question of the gate, its answer, or why the run failed.
    pub text: String,
    /// Users who may answer. If empty, anyone with the right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answerers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// What happens then: approve or deny.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = OnTimeout, required = false)]
    pub on_timeout: Option<String>,
    pub at: Instant,
}

impl From<Message> for MessageView {
    fn from(message: Message) -> MessageView {
        MessageView {
            event: message.topic.name().into(),
            title: message.title(),
            workflow: message.workflow,
            run_id: message.run,
            step: message.step,
            text: message.text,
            answerers: message.answerers,
            until: message.until.map(Instant),
            on_timeout: message.on_timeout,
            at: message.at.into(),
        }
    }
}
