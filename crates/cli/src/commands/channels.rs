//! `stepwell channel`: notification channels.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Backend, Missing, with};
use crate::draw::plain;
use anyhow::bail;
use std::io::{IsTerminal, Read, Write};
use stepwell_server::view::*;

/// Maximum bytes of a credential on standard input.
const MAX_SECRET: u64 = 4_096;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: ChannelCommand,
}

#[derive(clap::Subcommand)]
enum ChannelCommand {
    /// Add a channel; its credential (URL, key or topic) is read from standard input unless given
    Add(Box<Add>),
    /// List your channels and the organisation's, without their credentials
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Send a test message now
    Test(ChannelRef),
    /// Remove a channel
    Remove(ChannelRef),
}

#[derive(clap::Args)]
struct Add {
    /// Medium of the channel
    medium: MediumName,
    /// Name of the channel
    name: String,
    /// Create it for the organisation instead of yourself
    #[arg(long)]
    organisation: bool,
    /// URL of the webhook or Slack, or of a Pushover or ntfy compatible server
    #[arg(long, value_name = "URL")]
    service: Option<String>,
    /// Pushover user or group key
    #[arg(long, value_name = "KEY")]
    user_key: Option<String>,
    /// Pushover application token or ntfy access token
    #[arg(long)]
    token: Option<String>,
    /// ntfy topic
    #[arg(long)]
    topic: Option<String>,
    /// Email address
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// Event to send (repeatable; default: all)
    #[arg(long = "event", value_name = "EVENT")]
    events: Vec<EventName>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum MediumName {
    Pushover,
    Webhook,
    Slack,
    Ntfy,
    Email,
}

#[derive(Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum EventName {
    GateOpened,
    GateEscalated,
    GateAnswered,
    GateExpired,
    RunFailed,
}

impl From<EventName> for TopicView {
    fn from(name: EventName) -> TopicView {
        match name {
            EventName::GateOpened => TopicView::GateOpened,
            EventName::GateEscalated => TopicView::GateEscalated,
            EventName::GateAnswered => TopicView::GateAnswered,
            EventName::GateExpired => TopicView::GateExpired,
            EventName::RunFailed => TopicView::RunFailed,
        }
    }
}

#[derive(clap::Args)]
struct ChannelRef {
    /// Channel id or name
    channel: String,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        ChannelCommand::Add(add) => create(*add),
        ChannelCommand::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.channels().await?, common.json, listed))
        }
        ChannelCommand::Test(ChannelRef { channel, common }) => with(&common.at, Missing::Refuse, async |backend| {
            let sent = backend.test_channel(&channel).await?;
            if common.json {
                document(&sent)?;
            } else if let Some(error) = &sent.error {
                eprintln!("{}", plain(&format!("message not delivered: {error}")));
            } else {
                eprintln!("message delivered");
            }
            Ok(if sent.arrived { Exit::Success } else { Exit::Failed })
        }),
        ChannelCommand::Remove(ChannelRef { channel, common }) => with(&common.at, Missing::Refuse, async |backend| {
            backend.remove_channel(&channel).await?;
            let gone = serde_json::json!({"channel": channel, "deleted": true});
            confirm(&gone, common.json, &format!("the channel {channel} is removed"))
        }),
    }
}

fn create(add: Add) -> anyhow::Result<Exit> {
    let Add { medium, name, organisation, service: url, user_key, token, topic, to, events, common } = add;
    let mut new = NewChannelRequest {
        name,
        medium: MediumView::Email,
        organisation,
        url,
        token,
        user_key,
        topic,
        to,
        events: (!events.is_empty()).then(|| events.into_iter().map(TopicView::from).collect()),
    };
    // Reading the credential from standard input keeps it out of the shell history and the process list.
    let credential = match medium {
        MediumName::Pushover => Some(&mut new.user_key),
        MediumName::Webhook | MediumName::Slack => Some(&mut new.url),
        MediumName::Ntfy => Some(&mut new.topic),
        MediumName::Email => None,
    };
    if let Some(credential @ None) = credential {
        *credential = Some(read_credential()?);
    }
    new.medium = match medium {
        MediumName::Pushover => MediumView::Pushover,
        MediumName::Webhook => MediumView::Webhook,
        MediumName::Slack => MediumView::Slack,
        MediumName::Ntfy => MediumView::Ntfy,
        MediumName::Email => MediumView::Email,
    };
    with(&common.at, Missing::Refuse, async |backend: &Backend| {
        let created = backend.create_channel(new).await?;
        if common.json {
            document(&created)?;
            return Ok(Exit::Success);
        }
        eprintln!("{}", plain(&format!("{} ({}) is created", created.is.id, created.is.name)));
        if let Some(secret) = &created.secret {
            eprintln!("signing secret, not shown again:");
            writeln!(std::io::stdout().lock(), "{secret}")?;
        }
        Ok(Exit::Success)
    })
}

fn read_credential() -> anyhow::Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        eprint!("Credential (URL, key or topic): ");
        std::io::stdin().read_line(&mut text)?;
    } else {
        std::io::stdin().lock().take(MAX_SECRET).read_to_string(&mut text)?;
    }
    match text.trim() {
        "" => bail!("the channel needs a credential: --service, --user-key or --topic, or a line on standard input"),
        text => Ok(text.to_string()),
    }
}

fn listed(channel: &ChannelView) -> String {
    let events: Vec<String> = channel.events.iter().map(|event| serde_json::json!(event).to_string()).collect();
    let events = if channel.events.len() == 5 { "everything".into() } else { events.join(", ").replace('"', "") };
    let whose = channel.user.as_deref().unwrap_or("the organisation's");
    let medium = serde_json::json!(channel.medium).to_string().replace('"', "");
    format!("{}  {}  {medium} to {}  ({whose})  {events}", channel.id, channel.name, channel.target)
}
