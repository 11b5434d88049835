//! `stepwell approvals`, `approve` and `deny`: what people are asked, and what they answer.
//!
//! Whoever answers is shown what they answer, and the answer names its digest: it counts for that and nothing else.

use super::{Exit, document, lines};
use crate::backend::{Missing, with};
use crate::client::At;
use crate::draw::plain;
use crate::words::{asked, instant};
use anyhow::{Context, bail};
use std::io::Write;
use stepwell_engine::commands::Decision;
use stepwell_server::view::ApprovalView;

/// Characters of a digest that lists show.
const SHORT: usize = 12;

#[derive(clap::Args)]
pub struct ListArgs {
    /// Instead make a link by which somebody can answer without a key
    #[arg(long, num_args = 2, value_names = ["RUN", "STEP"])]
    link: Option<Vec<String>>,
    /// Whose link it is: yours without it; those of others are for administrators
    #[arg(long, value_name = "USER", requires = "link")]
    user: Option<String>,
    #[command(flatten)]
    at: At,
    /// One JSON object per line
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
        let link = backend.link(run, step, user.as_deref()).await?;
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
    let asks = asked(approval).join("\n    ");
    format!("{run_id}  {step}  {digest}  {workflow}  since {}{until}{mine}\n    {asks}", instant(since.0))
}

#[derive(clap::Args)]
pub struct AnswerArgs {
    /// `run_…`
    #[arg(value_name = "RUN")]
    run: String,
    /// The gate or the held step, by its path, or by its name if that says which
    #[arg(value_name = "STEP")]
    step: String,
    #[arg(long)]
    comment: Option<String>,
    /// What the gate's form asks for
    #[arg(long, value_name = "JSON")]
    form: Option<String>,
    /// Answer only if this is still what is asked; without it, what is asked now is printed and answered
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    #[command(flatten)]
    at: At,
    /// The run as one JSON document
    #[arg(long)]
    json: bool,
}

pub fn answer(args: AnswerArgs, approve: bool) -> anyhow::Result<Exit> {
    let AnswerArgs { run, step, comment, form, digest, at, json } = args;
    let form = form.map(|form| serde_json::from_str(&form).context("--form is not JSON")).transpose()?;
    let word = if approve { "approved" } else { "denied" };
    with(&at, Missing::Refuse, async |backend| {
        let asks = backend.approval(&run, &step).await?;
        asked(&asks).iter().for_each(|line| eprintln!("{}", plain(line)));
        // Lists show how digests begin.
        let full = asks.digest.filter(|full| digest.as_ref().is_none_or(|said| is_start(said, full)));
        let decision = Decision { approve, comment, data: form, digest: full.or(digest) };
        let after = backend.answer(&run, &step, decision).await?;
        let rests = format!("; go on with: stepwell run --resume {run}{}", at.data.option());
        let rests = if backend.rests().await? { rests.as_str() } else { "" };
        super::control::said(&after, json, &format!("{step} is {word}{rests}"))
    })
}

fn is_start(said: &str, full: &str) -> bool {
    said.len() >= SHORT && full.starts_with(said)
}
