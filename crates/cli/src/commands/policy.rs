//! `stepwell policy`: an organisation's rules for calls, which apply to all its workflows.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Missing, with};
use crate::draw::plain;
use anyhow::{Context, anyhow, bail};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
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
    /// Show what a policy that was set with --log would have stopped since then
    Log {
        /// Name of the policy
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Show what policies would have done with the calls of past runs
    Test {
        /// YAML or JSON file with policies by name (default: the policies that are set)
        file: Option<PathBuf>,
        /// How far back to look, at most 90d
        #[arg(long, value_name = "LENGTH", default_value = "7d")]
        since: String,
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
    /// Condition on the call, such as 'args.amount > 500 && caller.agent'
    #[arg(long, value_name = "EXPRESSION")]
    when: Option<String>,
    /// Only count what it would stop; see `stepwell policy log`
    #[arg(long)]
    log: bool,
    /// User or role whose approval counts (repeatable; default: anyone who may approve)
    #[arg(long = "approver", value_name = "USER|ROLE")]
    approvers: Vec<String>,
    /// Number of approvals required
    #[arg(long, value_name = "N", default_value_t = 1)]
    approvals: u32,
    /// Exclude the user who started the run from approving
    #[arg(long)]
    not_self: bool,
    /// Let an approver change the arguments of the call
    #[arg(long)]
    allow_changes: bool,
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
        Command::Log { name, common } => with(&common.at, Missing::Refuse, async |backend| {
            let log = backend.policy_log(&name).await?;
            if common.json {
                document(&log)?;
            } else {
                write!(std::io::stdout(), "{}", plain(&logged(&log)))?;
            }
            Ok(Exit::Success)
        }),
        Command::Test { file, since, common } => {
            let policies = file.as_deref().map(candidates).transpose()?;
            let request = PolicyTestRequest { policies, since: length(&since)? };
            with(&common.at, Missing::Refuse, async |backend| {
                let test = backend.test_policies(request).await?;
                if common.json {
                    document(&test)?;
                } else {
                    write!(std::io::stdout(), "{}", plain(&tested(&test)))?;
                }
                Ok(Exit::Success)
            })
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
        when: set.when,
        mode: if set.log { ModeName::Log } else { ModeName::Enforce },
        effect: match &*set.effect {
            "allow" => EffectName::Allow,
            "require_approval" => EffectName::RequireApproval,
            "deny" => EffectName::Deny,
            other => bail!("{other:?} is not an effect: expected allow, require_approval or deny"),
        },
        approvers: set.approvers,
        approvals: set.approvals,
        allow_self: !set.not_self,
        allow_changes: set.allow_changes,
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
    parts.extend(policy.when.as_ref().map(|when| format!("when {when}")));
    parts.extend((policy.mode == ModeName::Log).then(|| "only logged".to_string()));
    if policy.effect == EffectName::RequireApproval {
        let who = if policy.approvers.is_empty() { "anyone who may".into() } else { policy.approvers.join(", ") };
        parts.push(format!("{} of {who}", policy.approvals));
        parts.extend((!policy.allow_self).then(|| "not the user who started the run".to_string()));
        parts.extend(policy.allow_changes.then(|| "approvers may change the call".to_string()));
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

/// The policies in a file, by name.
fn candidates(file: &Path) -> anyhow::Result<BTreeMap<String, PolicyRequest>> {
    let shown = file.display().to_string();
    let text = std::fs::read(file).with_context(|| format!("cannot read {shown}"))?;
    let document = stepwell_formats::document(&text, Some(&shown));
    let document = document.map_err(|faults| anyhow!("{shown} cannot be read: {faults}"))?;
    serde_json::from_value(document)
        .with_context(|| format!("{shown}: expected policies by name, each with `calls` and `effect`"))
}

fn tested(test: &PolicyTestView) -> String {
    let mut text =
        format!("{} calls of {} runs since {}: {}\n", test.calls, test.runs, test.since.0, counted(test.counts));
    if test.erased > 0 {
        text.push_str(&format!("{} runs were erased: their calls are not known\n", test.erased));
    }
    if !test.is_complete {
        text.push_str("there are older runs that were not looked at\n");
    }
    for policy in &test.policies {
        text.push_str(&format!("\n{}: {}\n", policy.name, counted(policy.counts)));
        policy.samples.iter().for_each(|sample| text.push_str(&sampled(sample)));
    }
    text
}

fn logged(log: &PolicyLogView) -> String {
    let mut text = format!("{}\n", counted(log.counts));
    log.samples.iter().for_each(|sample| text.push_str(&sampled(sample)));
    text
}

fn counted(counts: PolicyCountsView) -> String {
    let PolicyCountsView { denied, held, delayed, allowed, undecided } = counts;
    let mut text = format!("{denied} denied, {held} held, {delayed} delayed, {allowed} let through");
    if undecided > 0 {
        text.push_str(&format!(" ({undecided} of them because the condition could not be decided)"));
    }
    text
}

fn sampled(sample: &PolicySampleView) -> String {
    let verdict = match sample.verdict {
        PolicyVerdictName::Denied => "denied",
        PolicyVerdictName::Held => "held",
        PolicyVerdictName::Delayed => "delayed",
        PolicyVerdictName::Allowed => "let through",
    };
    let place = [&sample.run, &sample.step, &sample.user].map(|part| part.as_deref().unwrap_or("-")).join("  ");
    let undecided = sample.undecided.as_deref().map(|why| format!("  ({why})")).unwrap_or_default();
    format!("{}  {verdict}  {}  {place}  {}{undecided}\n", sample.at.0, sample.call, sample.args)
}
