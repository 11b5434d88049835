//! `stepwell key`: API keys.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Missing, with};
use crate::describe::instant;
use crate::draw::plain;
use anyhow::Context;
use std::io::Write;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::{Clock, SystemClock};
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Create a key and print it; it cannot be shown again
    Create {
        /// Name that says what the key is for
        name: String,
        /// Owner of the key (default: you; on a directory, the user admin)
        #[arg(long)]
        user: Option<String>,
        /// Mark as an agent's key: it never administers, and answers gates only if granted workflow.approve by name
        #[arg(long)]
        agent: bool,
        /// Restrict the key to this grant of its user (repeatable)
        #[arg(long = "grant", value_name = "GRANT")]
        grants: Vec<String>,
        /// Expiry: an instant, or a duration from now such as 90d
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// List keys, without the secrets
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a key permanently
    Revoke(KeyRef),
    /// Suspend a key
    Pause(KeyRef),
    /// Reactivate a paused key
    Resume(KeyRef),
}

#[derive(clap::Args)]
struct KeyRef {
    /// Key id, as listed by `key list`
    id: String,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Create { name, user, agent, grants, expires, common } => {
            let expires_at = expires.as_deref().map(parse_expiry).transpose()?.map(Instant);
            let grants = Some(grants).filter(|grants| !grants.is_empty());
            create(&common, NewKeyRequest { user, name, agent, grants, expires_at })
        }
        Command::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.keys().await?, common.json, listed))
        }
        Command::Revoke(KeyRef { id, common }) => with(&common.at, Missing::Refuse, async |backend| {
            backend.revoke_key(&id).await?;
            let key = backend.keys().await?.into_iter().find(|key| key.id == id).context("the key no longer exists")?;
            confirm(&key, common.json, &format!("{id} is revoked"))
        }),
        Command::Pause(key) => pause(key, true),
        Command::Resume(key) => pause(key, false),
    }
}

/// Prints only the key on standard output, so that it can be redirected to a file.
fn create(common: &Common, new: NewKeyRequest) -> anyhow::Result<Exit> {
    with(&common.at, Missing::Refuse, async |backend| {
        let created = backend.create_key(new).await?;
        if common.json {
            document(&created)?;
            return Ok(Exit::Success);
        }
        let KeyView { id, name, user, .. } = &created.is;
        eprintln!("{}", plain(&format!("{id} ({name}) of {user}; the key is not shown again")));
        writeln!(std::io::stdout().lock(), "{}", created.key)?;
        Ok(Exit::Success)
    })
}

fn pause(KeyRef { id, common }: KeyRef, paused: bool) -> anyhow::Result<Exit> {
    with(&common.at, Missing::Refuse, async |backend| {
        let key = backend.pause_key(&id, paused).await?;
        confirm(&key, common.json, &format!("{id} {}", if paused { "is paused" } else { "is resumed" }))
    })
}

fn listed(key: &KeyView) -> String {
    let now = SystemClock.now();
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", instant(at.0)),
        (None, Some(at)) if at.0 <= now => format!("expired {}", instant(at.0)),
        _ if key.paused => "paused".to_string(),
        (None, Some(at)) => format!("until {}", instant(at.0)),
        (None, None) => "valid".to_string(),
    };
    let agent = if key.agent { ", agent" } else { "" };
    let grants = key.grants.as_ref().map(|grants| format!("  only {}", grants.join(", "))).unwrap_or_default();
    let used = key.last_used_at.map(|at| format!("  used {}", instant(at.0))).unwrap_or_default();
    format!("{}  {}…  {} ({}{agent})  {state}{used}{grants}", key.id, key.start, key.name, key.user)
}

/// Parses an instant, or a duration from now.
fn parse_expiry(text: &str) -> anyhow::Result<Time> {
    if text.contains(['-', ':']) {
        return Time::parse(text).with_context(|| format!("{text:?} is not an instant such as 2026-02-22T10:00:00Z"));
    }
    let length =
        Millis::parse(text).with_context(|| format!("{text:?} is neither an instant nor a duration such as 90d"))?;
    Ok(Time(SystemClock.now().0.saturating_add_unsigned(length.0)))
}
