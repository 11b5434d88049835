//! `stepwell key`, `user`, `grant` and `login`: who may do what.

use super::{Common, Exit, document, lines};
use crate::backend::{Backend, Missing, with, with_server};
use crate::client::Call;
use crate::draw::plain;
use crate::words::instant;
use anyhow::{Context, bail};
use std::io::Write;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::{Clock, SystemClock};
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(clap::Subcommand)]
enum KeyCommand {
    /// Make a key; it is printed once and cannot be shown again
    Create {
        /// What it is for
        name: String,
        /// Whose it is; without it yours, and on a directory the user admin's
        #[arg(long)]
        user: Option<String>,
        /// For an agent: it never answers gates unless it is given workflow.approve by name
        #[arg(long)]
        agent: bool,
        /// Leaves only this of what its user may do (may be repeated)
        #[arg(long = "grant", value_name = "GRANT")]
        grants: Vec<String>,
        /// When it ends: an instant, or a length from now such as 90d
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// List keys, without the keys themselves
    List {
        #[command(flatten)]
        common: Common,
    },
    /// End a key for good
    Revoke(OneKey),
    /// Let a key open nothing until it is resumed
    Pause(OneKey),
    /// Let a paused key work again
    Resume(OneKey),
}

#[derive(clap::Args)]
struct OneKey {
    /// As `key list` has it
    id: String,
    #[command(flatten)]
    common: Common,
}

pub fn key(args: KeyArgs) -> anyhow::Result<Exit> {
    match args.command {
        KeyCommand::Create { name, user, agent, grants, expires, common } => {
            let expires_at = expires.as_deref().map(instant_of).transpose()?.map(Instant);
            let grants = Some(grants).filter(|grants| !grants.is_empty());
            create_key(&common, NewKeyRequest { user, name, agent, grants, expires_at })
        }
        KeyCommand::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.keys().await?, common.json, listed_key))
        }
        KeyCommand::Revoke(OneKey { id, common }) => with(&common.at, Missing::Refuse, async |backend| {
            backend.revoke_key(&id).await?;
            let key = backend.keys().await?.into_iter().find(|key| key.id == id).context("the key is gone")?;
            said(&key, common.json, &format!("{id} is revoked"))
        }),
        KeyCommand::Pause(key) => pause_key(key, true),
        KeyCommand::Resume(key) => pause_key(key, false),
    }
}

/// The key alone on standard output, for whoever puts it into a file.
fn create_key(common: &Common, new: NewKeyRequest) -> anyhow::Result<Exit> {
    with(&common.at, Missing::Refuse, async |backend| {
        let made = backend.create_key(new).await?;
        if common.json {
            document(&made)?;
            return Ok(Exit::Success);
        }
        let KeyView { id, name, user, .. } = &made.is;
        eprintln!("{}", plain(&format!("{id} ({name}) of {user}; the key is not shown again")));
        writeln!(std::io::stdout().lock(), "{}", made.key)?;
        Ok(Exit::Success)
    })
}

fn pause_key(OneKey { id, common }: OneKey, paused: bool) -> anyhow::Result<Exit> {
    with(&common.at, Missing::Refuse, async |backend| {
        let key = backend.pause_key(&id, paused).await?;
        said(&key, common.json, &format!("{id} {}", if paused { "is paused" } else { "works again" }))
    })
}

fn listed_key(key: &KeyView) -> String {
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

/// An instant, or a length from now.
fn instant_of(text: &str) -> anyhow::Result<Time> {
    if text.contains(['-', ':']) {
        return Time::parse(text).with_context(|| format!("{text:?} is not an instant such as 2026-02-22T10:00:00Z"));
    }
    let length =
        Millis::parse(text).with_context(|| format!("{text:?} is neither an instant nor a length such as 90d"))?;
    Ok(Time(SystemClock.now().0.saturating_add_unsigned(length.0)))
}

#[derive(clap::Args)]
pub struct UserArgs {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(clap::Subcommand)]
enum UserCommand {
    /// Make a user
    Create {
        name: String,
        /// A role (may be repeated)
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// A grant in person, beside those of the roles (may be repeated)
        #[arg(long = "grant", value_name = "GRANT")]
        grants: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// List users
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Take all rights from a user; what they did stays theirs
    Disable {
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

pub fn user(args: UserArgs) -> anyhow::Result<Exit> {
    match args.command {
        UserCommand::Create { name, roles, grants, common } => with(&common.at, Missing::Refuse, async |backend| {
            let user = backend.create_user(NewUserRequest { name, roles, grants }).await?;
            said(&user, common.json, &format!("the user {} ({}) is made", user.name, user.id))
        }),
        UserCommand::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.users().await?, common.json, listed_user))
        }
        UserCommand::Disable { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            let to = UserChangeRequest { disabled: Some(true), ..UserChangeRequest::default() };
            let user = backend.change_user(&name, to).await?;
            said(&user, common.json, &format!("{} is disabled", user.name))
        }),
    }
}

fn listed_user(user: &UserView) -> String {
    let part = |what: &str, list: &[String]| match list {
        [] => String::new(),
        _ => format!("  {what} {}", list.join(", ")),
    };
    let disabled = if user.disabled { "  disabled" } else { "" };
    format!("{}  {}{}{}{disabled}", user.id, user.name, part("roles", &user.roles), part("grants", &user.grants))
}

#[derive(clap::Args)]
pub struct GrantArgs {
    #[command(subcommand)]
    command: GrantCommand,
}

#[derive(clap::Subcommand)]
enum GrantCommand {
    /// List what a user was given in person
    List {
        user: String,
        #[command(flatten)]
        common: Common,
    },
    /// Give a user grants or roles; it counts from the next step of their runs on
    Add(Given),
    /// Take grants or roles from a user
    Remove(Given),
}

#[derive(clap::Args)]
struct Given {
    user: String,
    /// Such as workflow.run, tool:PATTERN or secret:PATTERN
    #[arg(value_name = "GRANT")]
    grants: Vec<String>,
    /// A role (may be repeated)
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    #[command(flatten)]
    common: Common,
}

pub fn grant(args: GrantArgs) -> anyhow::Result<Exit> {
    match args.command {
        GrantCommand::List { user, common } => {
            with(&common.at, Missing::Refuse, async |backend| granted(&backend.user(&user).await?, common.json))
        }
        GrantCommand::Add(given) => give(given, |have, more| {
            more.iter().for_each(|one| {
                if !have.contains(one) {
                    have.push(one.clone())
                }
            });
            Ok(())
        }),
        GrantCommand::Remove(given) => give(given, |have, less| {
            if let Some(none) = less.iter().find(|one| !have.contains(one)) {
                bail!("the user was not given {none:?} in person");
            }
            have.retain(|one| !less.contains(one));
            Ok(())
        }),
    }
}

fn give(given: Given, change: impl Fn(&mut Vec<String>, &[String]) -> anyhow::Result<()>) -> anyhow::Result<Exit> {
    let Given { user, grants, roles, common } = given;
    if grants.is_empty() && roles.is_empty() {
        bail!("say which: GRANT…, or --role ROLE");
    }
    with(&common.at, Missing::Refuse, async |backend: &Backend| {
        let UserView { grants: mut have, roles: mut has, .. } = backend.user(&user).await?;
        change(&mut have, &grants)?;
        change(&mut has, &roles)?;
        // What is not meant is not sent: somebody else may be changing it.
        let grants = (!grants.is_empty()).then_some(have);
        let roles = (!roles.is_empty()).then_some(has);
        granted(&backend.change_user(&user, UserChangeRequest { roles, grants, disabled: None }).await?, common.json)
    })
}

fn granted(user: &UserView, json: bool) -> anyhow::Result<Exit> {
    if json {
        document(user)?;
        return Ok(Exit::Success);
    }
    let mut out = std::io::stdout().lock();
    for role in &user.roles {
        writeln!(out, "{}", plain(&format!("role {role}")))?;
    }
    for grant in &user.grants {
        writeln!(out, "{}", plain(grant))?;
    }
    Ok(Exit::Success)
}

pub fn said(what: &impl serde::Serialize, json: bool, words: &str) -> anyhow::Result<Exit> {
    if json {
        document(what)?;
    } else {
        eprintln!("{}", plain(words));
    }
    Ok(Exit::Success)
}

#[derive(clap::Args)]
pub struct LoginArgs {
    /// Somebody else, if you are an administrator
    #[arg(long)]
    user: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub fn login(args: LoginArgs) -> anyhow::Result<Exit> {
    with_server(&args.common.at, async |client| {
        let link: LinkView = client.ask(Call::post(&["sign-in-links"]).query("user", args.user.as_ref())).await?;
        if args.common.json {
            document(&link)?;
        } else {
            writeln!(std::io::stdout().lock(), "{}", plain(&link.url))?;
        }
        Ok(Exit::Success)
    })
}
