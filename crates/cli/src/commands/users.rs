//! `stepwell user` and `grant`: users, their roles and their grants.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Backend, Missing, with};
use crate::draw::plain;
use anyhow::bail;
use std::io::Write;
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct UserArgs {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(clap::Subcommand)]
enum UserCommand {
    /// Create a user
    Create {
        /// Name of the new user
        name: String,
        /// Role (repeatable)
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// Direct grant, in addition to those of the roles (repeatable)
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
    /// Disable a user; what they did stays attributed to them
    Disable {
        /// Name of the user
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

pub fn user(args: UserArgs) -> anyhow::Result<Exit> {
    match args.command {
        UserCommand::Create { name, roles, grants, common } => with(&common.at, Missing::Refuse, async |backend| {
            let user = backend.create_user(NewUserRequest { name, roles, grants }).await?;
            confirm(&user, common.json, &format!("the user {} ({}) is created", user.name, user.id))
        }),
        UserCommand::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.users().await?, common.json, listed_user))
        }
        UserCommand::Disable { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            let to = UserChangeRequest { disabled: Some(true), ..UserChangeRequest::default() };
            let user = backend.change_user(&name, to).await?;
            confirm(&user, common.json, &format!("{} is disabled", user.name))
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
    /// List a user's roles and direct grants
    List {
        /// Name of the user
        user: String,
        #[command(flatten)]
        common: Common,
    },
    /// Add grants or roles; takes effect with the next step of the user's runs
    Add(ChangeArgs),
    /// Remove grants or roles
    Remove(ChangeArgs),
}

#[derive(clap::Args)]
struct ChangeArgs {
    /// Name of the user
    user: String,
    /// Grant, such as workflow.run, tool:PATTERN or secret:PATTERN
    #[arg(value_name = "GRANT")]
    grants: Vec<String>,
    /// Role (repeatable)
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
        GrantCommand::Add(args) => change_grants(args, |have, more| {
            more.iter().for_each(|one| {
                if !have.contains(one) {
                    have.push(one.clone())
                }
            });
            Ok(())
        }),
        GrantCommand::Remove(args) => change_grants(args, |have, less| {
            if let Some(none) = less.iter().find(|one| !have.contains(one)) {
                bail!("the user was not given {none:?} directly");
            }
            have.retain(|one| !less.contains(one));
            Ok(())
        }),
    }
}

fn change_grants(
    args: ChangeArgs,
    change: impl Fn(&mut Vec<String>, &[String]) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let ChangeArgs { user, grants, roles, common } = args;
    if grants.is_empty() && roles.is_empty() {
        bail!("name at least one GRANT, or --role ROLE");
    }
    with(&common.at, Missing::Refuse, async |backend: &Backend| {
        let UserView { grants: mut have, roles: mut has, .. } = backend.user(&user).await?;
        change(&mut have, &grants)?;
        change(&mut has, &roles)?;
        // Send only what changes: another request may be changing the rest.
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
