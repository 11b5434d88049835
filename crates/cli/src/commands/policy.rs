//! `stepwell policy`: an organisation's rules for calls, which apply to all its workflows.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Missing, with};
use crate::draw::plain;
use anyhow::{Context, bail};
use stepwell_core::time::Millis;
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Create or replace a policy; takes effect with the next call
    Set(Box<SetArgs>),
    /// List policies
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Remove a policy
    Delete {
        /// Name of the policy
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(clap::Args)]
struct SetArgs {
    /// Name of the policy
    name: String,
    /// Calls it applies to: tool:PATTERN, host:PATTERN, connection:PATTERN or unreviewed:WORKFLOW
    calls: String,
    /// Effect: allow, require_approval or deny
    effect: String,
    /// Calls it does not apply to, in the same form (repeatable)
    #[arg(long, value_name = "CALLS")]
    except: Vec<String>,
    /// User or role whose approval counts (repeatable; default: anyone who may approve)
    #[arg(long = "approver", value_name = "USER|ROLE")]
    approvers: Vec<String>,
    /// Number of approvals required
    #[arg(long, value_name = "N", default_value_t = 1)]
    approvals: u32,
    /// Exclude the user who started the run from approving
    #[arg(long)]
    not_self: bool,
    /// Deny after this time without an approval, such as 1d
    #[arg(long, value_name = "LENGTH")]
    timeout: Option<String>,
    /// If a call may have happened, do not repeat it: fail, or ask a person
    #[arg(long, value_name = "fail|ask")]
    at_most_once: Option<String>,
    /// Rate limit, such as 10/1m
    #[arg(long, value_name = "CALLS/LENGTH")]
    rate: Option<String>,
    /// Reason shown to callers that it stops
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Set(set) => put(*set),
        Command::List { common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.policies().await?, common.json, listed))
        }
        Command::Delete { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            backend.remove_policy(&name).await?;
            let gone = serde_json::json!({"name": name, "deleted": true});
            confirm(&gone, common.json, &format!("the policy {name} is removed"))
        }),
    }
}

fn put(set: SetArgs) -> anyhow::Result<Exit> {
    let request = PolicyRequest {
        calls: set.calls,
        except: set.except,
        effect: match &*set.effect {
            "allow" => EffectName::Allow,
            "require_approval" => EffectName::RequireApproval,
            "deny" => EffectName::Deny,
            other => bail!("{other:?} is not an effect: expected allow, require_approval or deny"),
        },
        approvers: set.approvers,
        approvals: set.approvals,
        allow_self: !set.not_self,
        timeout: set.timeout.as_deref().map(length).transpose()?,
        at_most_once: match set.at_most_once.as_deref() {
            None => None,
            Some("fail") => Some(UnknownName::Fail),
            Some("ask") => Some(UnknownName::Ask),
            Some(other) => bail!("--at-most-once {other}: expected fail or ask"),
        },
        rate: set.rate.as_deref().map(rate).transpose()?,
        reason: set.reason,
    };
    with(&set.common.at, Missing::Refuse, async |backend| {
        let policy = backend.put_policy(&set.name, request).await?;
        if set.common.json {
            document(&policy)?;
        } else {
            eprintln!("{}", plain(&format!("the policy {}", listed(&policy))));
        }
        Ok(Exit::Success)
    })
}

fn length(text: &str) -> anyhow::Result<Length> {
    Millis::parse(text).map(Length).with_context(|| format!("{text:?} is not a duration such as 10m"))
}

fn rate(text: &str) -> anyhow::Result<RateView> {
    let parts = text.split_once('/').and_then(|(calls, per)| Some((calls.parse().ok()?, Millis::parse(per)?)));
    let (calls, per) = parts.with_context(|| format!("--rate {text}: expected calls and a duration, such as 10/1m"))?;
    Ok(RateView { calls, per: Length(per) })
}

fn listed(policy: &PolicyView) -> String {
    let effect = match policy.effect {
        EffectName::Allow => "allow",
        EffectName::RequireApproval => "require_approval",
        EffectName::Deny => "deny",
    };
    let mut parts = vec![format!("{}  {}  {effect}", policy.name, policy.calls)];
    parts.extend((!policy.except.is_empty()).then(|| format!("except {}", policy.except.join(", "))));
    if policy.effect == EffectName::RequireApproval {
        let who = if policy.approvers.is_empty() { "anyone who may".into() } else { policy.approvers.join(", ") };
        parts.push(format!("{} of {who}", policy.approvals));
        parts.extend((!policy.allow_self).then(|| "not the user who started the run".to_string()));
        parts.extend(policy.timeout.map(|timeout| format!("within {}", timeout.0)));
    }
    parts.extend(policy.at_most_once.map(|unknown| match unknown {
        UnknownName::Fail => "at most once, else fails".into(),
        UnknownName::Ask => "at most once, else asks".into(),
    }));
    parts.extend(policy.rate.map(|rate| format!("{} calls in {}", rate.calls, rate.per.0)));
    parts.extend(policy.reason.clone());
    parts.join("  ")
}
