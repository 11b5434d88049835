//! `stepwell approvals`, `approve` and `deny`: open approvals and their answers.
//!
//! An answer first prints the request and then names its digest, so that it applies to that request only.

use super::{Exit, confirm, document, lines};
use crate::backend::{Missing, RunRef, with};
use crate::client::Target;
use crate::describe::{asked, instant};
use crate::draw::plain;
use anyhow::{Context, bail};
use std::io::Write;
use stepwell_engine::commands::Decision;
use stepwell_server::view::ApprovalView;

/// Characters of a digest shown in lists.
const SHORT: usize = 12;
/// Characters of a call's arguments shown in lists. An answer shows all of them first.
const MAX_CALL: usize = 2_000;

#[derive(clap::Args)]
pub struct ListArgs {
    /// Create a link for answering this step without a key
    #[arg(long, num_args = 2, value_names = ["RUN", "STEP"])]
    link: Option<Vec<String>>,
    /// User the link is for (default: you; others require admin)
    #[arg(long, value_name = "USER", requires = "link")]
    user: Option<String>,
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub fn list(args: ListArgs) -> anyhow::Result<Exit> {
    let ListArgs { link, user, at, json } = args;
    let Some(link) = link else {
        return with(&at, Missing::Refuse, async |backend| lines(&backend.approvals().await?, json, listed));
    };
    let [run, step] = link.as_slice() else { bail!("--link takes a run and a step") };
    with(&at, Missing::Refuse, async |backend| {
        let run = RunRef::from(run.clone()).find(backend).await?;
        let link = backend.link(&run, step, user.as_deref()).await?;
        if json {
            document(&link)?;
        } else {
            writeln!(std::io::stdout().lock(), "{}", plain(&link.url))?;
        }
        Ok(Exit::Success)
    })
}

fn listed(approval: &ApprovalView) -> String {
    let ApprovalView { run_id, step, workflow, since, digest, .. } = approval;
    let digest = digest.as_deref().and_then(|digest| digest.get(..SHORT)).unwrap_or("verdict");
    let until = approval.until.map(|until| format!(", until {}", instant(until.0))).unwrap_or_default();
    let mine = if approval.mine { "" } else { "  (not yours)" };
    let asks = asked(approval, MAX_CALL).join("\n    ");
    format!("{run_id}  {step}  {digest}  {workflow}  since {}{until}{mine}\n    {asks}", instant(since.0))
}

#[derive(clap::Args)]
pub struct AnswerArgs {
    /// Run, by its id or a unique beginning or end of it
    #[arg(value_name = "RUN")]
    run: RunRef,
    /// Gate or held step, by path, or by name if the name is unique
    #[arg(value_name = "STEP")]
    step: String,
    /// Comment to record with the answer
    #[arg(long)]
    comment: Option<String>,
    /// Data for the gate's form
    #[arg(long, value_name = "JSON")]
    form: Option<String>,
    /// Approve with changes: the whole changed input of a held call, where the policy allows it
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Answer only if the request still has this digest (default: answer the current request)
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    #[command(flatten)]
    at: Target,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

pub fn answer(args: AnswerArgs, approve: bool) -> anyhow::Result<Exit> {
    let AnswerArgs { run, step, comment, form, input, digest, at, json } = args;
    let form = form.map(|form| serde_json::from_str(&form).context("--form is not JSON")).transpose()?;
    let input = input.map(|input| serde_json::from_str(&input).context("--input is not JSON")).transpose()?;
    let word = if approve { "approved" } else { "denied" };
    with(&at, Missing::Refuse, async |backend| {
        let run = run.find(backend).await?;
        let approval = backend.approval(&run, &step).await?;
        asked(&approval, usize::MAX).iter().for_each(|line| eprintln!("{}", plain(line)));
        // Lists show only the start of a digest.
        let full = approval.digest.filter(|full| digest.as_ref().is_none_or(|prefix| is_prefix(prefix, full)));
        let decision = Decision { approve, comment, data: form, digest: full.or(digest), input };
        let after = backend.answer(&run, &step, decision).await?;
        let resume = format!("; continue with: stepwell run --resume {run}{}", at.data.option());
        let resume = if backend.is_idle().await? { resume.as_str() } else { "" };
        confirm(&after, json, &format!("{step} is {word}{resume}"))
    })
}

fn is_prefix(prefix: &str, full: &str) -> bool {
    prefix.len() >= SHORT && full.starts_with(prefix)
}
