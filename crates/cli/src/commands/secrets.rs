//! `stepwell secret` and `connection`: values that steps can use but no one can read. They come from standard input, a
//! file or a variable, never from the command line, which other users of the machine can see.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Missing, with};
use crate::describe::{instant, length};
use crate::draw::plain;
use crate::home::variable;
use anyhow::{Context, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use stepwell_core::time::Millis;
use stepwell_server::view::*;

/// Maximum bytes read of a value; more than any value may have.
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(clap::Args)]
pub struct SecretArgs {
    #[command(subcommand)]
    command: SecretCommand,
}

/// The source of a value; standard input by default.
#[derive(clap::Args)]
#[group(multiple = false)]
struct From {
    /// Read the value from a file instead of standard input
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// Read the value from an environment variable
    #[arg(long, value_name = "VARIABLE")]
    from_env: Option<String>,
}

#[derive(clap::Subcommand)]
enum SecretCommand {
    /// Create or change a secret; reads the value from standard input
    Set {
        /// Name; steps use it as {{secrets.NAME}}
        name: String,
        /// Allow only this host, such as api.example.com or *.example.org (repeatable)
        #[arg(long = "host", value_name = "HOST", conflicts_with = "any_host")]
        hosts: Vec<String>,
        /// Allow any host
        #[arg(long)]
        any_host: bool,
        /// Keep the value and change only the hosts
        #[arg(long, conflicts_with_all = ["from_file", "from_env"])]
        keep_value: bool,
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        common: Common,
    },
    /// List secrets, without their values
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Delete a secret
    Delete {
        /// Name of the secret
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Reseal everything under the first master key, so that older keys can be removed
    Rotate {
        #[command(flatten)]
        common: Common,
    },
}

pub fn secret(args: SecretArgs) -> anyhow::Result<Exit> {
    match args.command {
        SecretCommand::Set { name, hosts, any_host, keep_value, from, common } => {
            let value = if keep_value { None } else { Some(from.read(&format!("The value of {name}"))?) };
            let hosts = (any_host || !hosts.is_empty()).then_some(hosts);
            with(&common.at, Missing::Create, async |backend| {
                let secret = backend.put_secret(&name, SecretRequest { value, hosts }).await?;
                if !secret.masked {
                    eprintln!("{name} is shorter than 8 characters and is not masked in responses");
                }
                confirm(&secret, common.json, &format!("{name} is set (version {})", secret.version))
            })
        }
        SecretCommand::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.secrets().await?, common.json, listed))
        }
        SecretCommand::Delete { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            backend.remove_secret(&name).await?;
            confirm(&serde_json::json!({"name": name, "deleted": true}), common.json, &format!("{name} is deleted"))
        }),
        SecretCommand::Rotate { common } => with(&common.at, Missing::Refuse, async |backend| {
            let done = backend.rotate_secrets().await?;
            if common.json {
                document(&done)?;
            } else {
                done.locked.iter().for_each(|locked| eprintln!("{}", plain(locked)));
                let RotatedView { key, sealed, .. } = &done;
                writeln!(std::io::stdout().lock(), "{sealed} resealed; everything is under the master key {key}")?;
            }
            Ok(if done.locked.is_empty() { Exit::Success } else { Exit::Failed })
        }),
    }
}

fn listed(secret: &SecretView) -> String {
    let SecretView { name, hosts, version, changed_at, changed_by, .. } = secret;
    let hosts = if hosts.is_empty() { "any host".to_string() } else { hosts.join(", ") };
    let short = if secret.masked { "" } else { "  not masked: too short" };
    format!("{name}  version {version}  {hosts}  {} by {changed_by}{short}", instant(changed_at.0))
}

#[derive(clap::Args)]
pub struct ConnectionArgs {
    #[command(subcommand)]
    command: ConnectionCommand,
}

#[derive(clap::Subcommand)]
enum ConnectionCommand {
    /// Create or change a connection; reads the URL from standard input
    Set {
        /// Name by which query steps use it
        name: String,
        /// Allow statements to write
        #[arg(long)]
        write: bool,
        /// Maximum number of rows a query returns
        #[arg(long, value_name = "N")]
        rows: Option<u32>,
        /// Maximum duration of a statement, such as 30s
        #[arg(long, value_name = "TIME")]
        timeout: Option<String>,
        /// Keep the URL and change only the other settings
        #[arg(long, conflicts_with_all = ["from_file", "from_env"])]
        keep_url: bool,
        #[command(flatten)]
        from: From,
        #[command(flatten)]
        common: Common,
    },
    /// List connections, without their URLs
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Delete a connection
    Delete {
        /// Name of the connection
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

pub fn connection(args: ConnectionArgs) -> anyhow::Result<Exit> {
    match args.command {
        ConnectionCommand::Set { name, write, rows, timeout, keep_url, from, common } => {
            let timeout_ms = timeout.as_deref().map(|text| {
                Millis::parse(text)
                    .with_context(|| format!("--timeout {text}: expected a duration such as 500ms, 30s or 5m"))
            });
            let timeout_ms = timeout_ms.transpose()?.map(|length| length.0);
            let url = if keep_url { None } else { Some(from.read(&format!("The URL of {name}"))?.trim().to_string()) };
            with(&common.at, Missing::Create, async |backend| {
                let to = ConnectionRequest { url, write, rows, timeout_ms };
                let connection = backend.put_connection(&name, to).await?;
                confirm(&connection, common.json, &format!("{name} is set: {}", place(&connection)))
            })
        }
        ConnectionCommand::List { common } => with(&common.at, Missing::Refuse, async |backend| {
            lines(&backend.connections().await?, common.json, listed_connection)
        }),
        ConnectionCommand::Delete { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            backend.remove_connection(&name).await?;
            confirm(&serde_json::json!({"name": name, "deleted": true}), common.json, &format!("{name} is deleted"))
        }),
    }
}

fn place(connection: &ConnectionView) -> String {
    let ConnectionView { scheme, host, database, .. } = connection;
    let host = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
    format!("{scheme} {database}{host}")
}

fn listed_connection(connection: &ConnectionView) -> String {
    let ConnectionView { name, write, rows, timeout_ms, changed_at, changed_by, .. } = connection;
    let write = if *write { "writes" } else { "reads only" };
    let rows = rows.map(|rows| format!(", {rows} rows")).unwrap_or_default();
    let timeout = timeout_ms.map(|ms| format!(", {}", length(Millis(ms)))).unwrap_or_default();
    format!("{name}  {}  {write}{rows}{timeout}  {} by {changed_by}", place(connection), instant(changed_at.0))
}

impl From {
    /// Reads the value without one trailing line break.
    fn read(&self, what: &str) -> anyhow::Result<String> {
        let mut text = match self {
            From { from_file: Some(path), .. } => {
                std::fs::read_to_string(path).with_context(|| path.display().to_string())?
            }
            From { from_env: Some(name), .. } => {
                variable(name).with_context(|| format!("the variable {name} is not set"))?
            }
            From { .. } if std::io::stdin().is_terminal() => read_hidden(what)?,
            From { .. } => {
                let mut text = String::new();
                let read = std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text);
                read.context("cannot read standard input as text")?;
                text
            }
        };
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        if text.is_empty() {
            bail!("{what} is empty: pass it on standard input, or with --from-file or --from-env");
        }
        Ok(text)
    }
}

/// Reads a line from the terminal without echo.
fn read_hidden(what: &str) -> anyhow::Result<String> {
    eprint!("{}: ", plain(what));
    let stdin = std::io::stdin();
    let shown = tcgetattr(&stdin).context("cannot read the terminal settings")?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden).context("cannot turn off the terminal's echo")?;
    let mut text = String::new();
    let read = stdin.lock().read_line(&mut text);
    tcsetattr(&stdin, OptionalActions::Flush, &shown).context("cannot restore the terminal's echo: run `stty echo`")?;
    eprintln!();
    read.context("cannot read standard input as text")?;
    Ok(text)
}
