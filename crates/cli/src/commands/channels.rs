//! `stepwell channel`: where notifications go.

use super::{Common, Exit, document, lines};
use crate::backend::{Backend, Missing, with};
use crate::draw::plain;
use anyhow::bail;
use std::io::{IsTerminal, Read, Write};
use stepwell_server::view::*;

/// Bytes of a secret on standard input.
const MAX_SECRET: u64 = 4_096;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: ChannelCommand,
}

#[derive(clap::Subcommand)]
enum ChannelCommand {
    /// Make a channel; what opens it (a URL, a key, a token) is read from standard input where it is not given
    Add(Box<Add>),
    /// List your channels and those of the organisation, without what opens them
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Send a message through a channel now
    Test(One),
    /// Remove a channel
    Remove(One),
}

#[derive(clap::Args)]
struct Add {
    medium: MediumName,
    /// What it is called
    name: String,
    /// For the organisation, not for yourself
    #[arg(long)]
    organisation: bool,
    /// Of a webhook or Slack; of another server of Pushover's or ntfy's kind
    #[arg(long, value_name = "URL")]
    service: Option<String>,
    /// Pushover's user or group key
    #[arg(long, value_name = "KEY")]
    user_key: Option<String>,
    /// Pushover's application token, ntfy's access token
    #[arg(long)]
    token: Option<String>,
    /// Of ntfy
    #[arg(long)]
    topic: Option<String>,
    /// An email address
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// Only this goes there (may be repeated); without it everything
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
struct One {
    /// Its id, or its name
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
        ChannelCommand::Test(One { channel, common }) => with(&common.at, Missing::Refuse, async |backend| {
            let sent = backend.test_channel(&channel).await?;
            if common.json {
                document(&sent)?;
            } else if let Some(error) = &sent.error {
                eprintln!("{}", plain(&format!("it did not arrive: {error}")));
            } else {
                eprintln!("it arrived");
            }
            Ok(if sent.arrived { Exit::Success } else { Exit::Failed })
        }),
        ChannelCommand::Remove(One { channel, common }) => with(&common.at, Missing::Refuse, async |backend| {
            backend.remove_channel(&channel).await?;
            eprintln!("{}", plain(&format!("the channel {channel} is removed")));
            Ok(Exit::Success)
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
    // What opens the channel: kept out of the shell's history and the list of processes where that is wanted.
    let opens = match medium {
        MediumName::Pushover => Some(&mut new.user_key),
        MediumName::Webhook | MediumName::Slack => Some(&mut new.url),
        MediumName::Ntfy => Some(&mut new.topic),
        MediumName::Email => None,
    };
    if let Some(opens @ None) = opens {
        *opens = Some(secret()?);
    }
    new.medium = match medium {
        MediumName::Pushover => MediumView::Pushover,
        MediumName::Webhook => MediumView::Webhook,
        MediumName::Slack => MediumView::Slack,
        MediumName::Ntfy => MediumView::Ntfy,
        MediumName::Email => MediumView::Email,
    };
    with(&common.at, Missing::Refuse, async |backend: &Backend| {
        let made = backend.create_channel(new).await?;
        if common.json {
            document(&made)?;
            return Ok(Exit::Success);
        }
        eprintln!("{}", plain(&format!("{} ({}) is made", made.is.id, made.is.name)));
        if let Some(secret) = &made.secret {
            eprintln!("what its calls are signed with is not shown again:");
            writeln!(std::io::stdout().lock(), "{secret}")?;
        }
        Ok(Exit::Success)
    })
}

fn secret() -> anyhow::Result<String> {
    let mut text = String::new();
    if std::io::stdin().is_terminal() {
        eprint!("What opens it (URL, key or topic): ");
        std::io::stdin().read_line(&mut text)?;
    } else {
        std::io::stdin().lock().take(MAX_SECRET).read_to_string(&mut text)?;
    }
    match text.trim() {
        "" => bail!("say what opens the channel: --service, --user-key or --topic, or a line on standard input"),
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
