//! `stepwell review`: what agents' keys wrote, and the answers of people.
//!
//! An answer first prints what is under review and then names its digest, so that it applies to that only.

use super::{Common, Exit, confirm, document, lines};
use crate::backend::{Missing, with};
use crate::draw::plain;
use std::fmt::Write as _;
use std::io::Write as _;
use stepwell_server::view::*;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List what agents wrote and no person has answered
    List {
        /// Also show what was answered
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show a review: the difference from the accepted version, what is new, what the simulation and the policies say
    Show {
        /// Review, or the workflow if one review of it is open
        #[arg(value_name = "REVIEW")]
        review: String,
        #[command(flatten)]
        common: Common,
    },
    /// Accept what an agent wrote
    Accept {
        #[command(flatten)]
        answer: Answer,
        /// Accept it for this run only
        #[arg(long, value_name = "RUN")]
        run: Option<String>,
    },
    /// Refuse what an agent wrote
    Refuse {
        #[command(flatten)]
        answer: Answer,
    },
}

#[derive(clap::Args)]
struct Answer {
    /// Review, or the workflow if one review of it is open
    #[arg(value_name = "REVIEW")]
    review: String,
    /// Comment that the agent can read
    #[arg(long)]
    comment: Option<String>,
    /// Digest of the review that you saw (default: of what this command prints)
    #[arg(long)]
    digest: Option<String>,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::List { all, common } => {
            with(&common.at, Missing::Refuse, async |backend| lines(&backend.reviews(all).await?, common.json, listed))
        }
        Command::Show { review, common } => with(&common.at, Missing::Refuse, async |backend| {
            let found = backend.review(&review).await?;
            if common.json {
                document(&found)?;
            } else {
                write!(std::io::stdout().lock(), "{}", plain(&shown(&found)))?;
            }
            Ok(Exit::Success)
        }),
        Command::Accept { answer: given, run } => answer(given, true, run),
        Command::Refuse { answer: given } => answer(given, false, None),
    }
}

fn answer(given: Answer, accept: bool, run: Option<String>) -> anyhow::Result<Exit> {
    let Answer { review, comment, digest, common } = given;
    with(&common.at, Missing::Refuse, async |backend| {
        let found = backend.review(&review).await?;
        if digest.is_none() {
            eprint!("{}", plain(&shown(&found)));
        }
        let digest = digest.clone().unwrap_or_else(|| found.digest.clone());
        let request = ReviewRequest { digest, comment: comment.clone(), run: run.clone() };
        let answered = backend.answer_review(&found.summary.id, accept, request).await?;
        confirm(&answered, common.json, &plain(&listed(&answered)))
    })
}

fn listed(review: &ReviewSummary) -> String {
    let version = review.version.map_or("proposal".into(), |version| format!("version {version}"));
    let mut line = format!("{}  {}  {} ({version})  by {}", review.id, review.state, review.workflow, writer(review));
    line.extend(review.reason.iter().map(|reason| format!("  {reason}")));
    line.extend(review.comment.iter().map(|comment| format!("  comment: {comment}")));
    line
}

/// The key, its user and the client.
fn writer(review: &ReviewSummary) -> String {
    let key = review.key.as_ref().map(|key| format!("agent key {key} of ")).unwrap_or_default();
    let client = review.client.as_ref().map(|client| format!(", client {client}")).unwrap_or_default();
    format!("{key}{}{client}", review.written_by)
}

fn shown(review: &ReviewDetail) -> String {
    let mut text = format!("{}\n", listed(&review.summary));
    let base = review.base.map_or("no accepted version".into(), |base| format!("version {base}"));
    let _ = writeln!(text, "compared with {base}:\n{}", review.diff);
    let StepChangesView { added, changed, removed } = &review.steps;
    let UsesView { tools, hosts, secrets, connections, workflows } = &review.new;
    for (what, list) in [
        ("added steps", added),
        ("changed steps", changed),
        ("removed steps", removed),
        ("new tools", tools),
        ("new hosts", hosts),
        ("new secrets", secrets),
        ("new connections", connections),
        ("new child workflows", workflows),
        ("policies", &review.policies),
    ] {
        if !list.is_empty() {
            let _ = writeln!(text, "{what}: {}", list.join(", "));
        }
    }
    let SimulationView { status, steps, error } = &review.simulation;
    let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let _ = writeln!(text, "simulation: {status}{error} ({})", steps.join(", "));
    let _ = writeln!(text, "digest: {}", review.digest);
    text
}
