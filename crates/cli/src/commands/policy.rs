//! `stepwell policy`: what an organisation says about calls, whatever its workflows say.

use super::{Common, Exit, document, lines};
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
    /// Make a policy, or give it another content; it counts from the next call on
    Set(Box<SetArgs>),
    /// List policies
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Remove a policy
    Delete {
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(clap::Args)]
struct SetArgs {
    name: String,
    /// Which calls: tool:PATTERN, host:PATTERN or connection:PATTERN
    calls: String,
    /// allow, require_approval or deny
    effect: String,
    /// A user or role whose approval counts (may be repeated); anyone who may approve without it
    #[arg(long = "approver", value_name = "USER|ROLE")]
    approvers: Vec<String>,
    /// How many of them must approve
    #[arg(long, value_name = "N", default_value_t = 1)]
    approvals: u32,
    /// Whoever started the run may not approve
    #[arg(long)]
    not_self: bool,
    /// After this time an approval that nobody gave is denied, such as 1d
    #[arg(long, value_name = "LENGTH")]
    timeout: Option<String>,
    /// A tool's call that may have happened is not made again: fail, or ask a person
    #[arg(long, value_name = "fail|ask")]
    at_most_once: Option<String>,
    /// So many calls in so much time, such as 10/1m
    #[arg(long, value_name = "CALLS/LENGTH")]
    rate: Option<String>,
    /// For those who are stopped by it
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
            eprintln!("{}", plain(&format!("the policy {name} is removed")));
            Ok(Exit::Success)
        }),
    }
}

fn put(set: SetArgs) -> anyhow::Result<Exit> {
    let request = PolicyRequest {
        calls: set.calls,
        effect: match &*set.effect {
            "allow" => EffectName::Allow,
            "require_approval" => EffectName::RequireApproval,
            "deny" => EffectName::Deny,
            other => bail!("{other:?} is no effect: one of allow, require_approval, deny"),
        },
        approvers: set.approvers,
        approvals: set.approvals,
        allow_self: !set.not_self,
        timeout: set.timeout.as_deref().map(length).transpose()?,
        at_most_once: match set.at_most_once.as_deref() {
            None => None,
            Some("fail") => Some(UnknownName::Fail),
            Some("ask") => Some(UnknownName::Ask),
            Some(other) => bail!("--at-most-once {other}: fail or ask"),
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
    Millis::parse(text).map(Length).with_context(|| format!("{text:?} is not a length of time such as 10m"))
}

fn rate(text: &str) -> anyhow::Result<RateView> {
    let parts = text.split_once('/').and_then(|(calls, per)| Some((calls.parse().ok()?, Millis::parse(per)?)));
    let (calls, per) = parts.with_context(|| format!("--rate {text}: calls and a length of time, such as 10/1m"))?;
    Ok(RateView { calls, per: Length(per) })
}

fn listed(policy: &PolicyView) -> String {
    let effect = match policy.effect {
        EffectName::Allow => "allow",
        EffectName::RequireApproval => "require_approval",
        EffectName::Deny => "deny",
    };
    let mut words = vec![format!("{}  {}  {effect}", policy.name, policy.calls)];
    if policy.effect == EffectName::RequireApproval {
        let who = if policy.approvers.is_empty() { "anyone who may".into() } else { policy.approvers.join(", ") };
        words.push(format!("{} of {who}", policy.approvals));
        words.extend((!policy.allow_self).then(|| "not whoever started the run".to_string()));
        words.extend(policy.timeout.map(|timeout| format!("within {}", timeout.0)));
    }
    words.extend(policy.at_most_once.map(|unknown| match unknown {
        UnknownName::Fail => "at most once, else fails".into(),
        UnknownName::Ask => "at most once, else asks".into(),
    }));
    words.extend(policy.rate.map(|rate| format!("{} calls in {}", rate.calls, rate.per.0)));
    words.extend(policy.reason.clone());
    words.join("  ")
}
