//! `stepwell test`: runs the cases of `*.test.yaml` files against their definitions, on virtual time.
//!
//! The planner is the real one (`core::plan`), and code is evaluated; calls and people are what a case says. Not here:
//! rights, policies and rate limits, which belong to an installation.

mod case;
mod code;
mod judge;
mod junit;

use super::Exit;
use super::simulate::timeline;
use crate::draw::plain;
use crate::source::{gather, is_test};
use anyhow::{Context, bail};
use case::{Case, Suite};
use code::Code;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};
use stepwell_core::simulate::play::{Otherwise, Play, Played};

/// More than any test has; a case with more goes in circles.
const MAX_EVENTS: u32 = 100_000;

#[derive(clap::Args)]
pub struct Args {
    /// Test files, or directories of them (*.test.yaml, *.test.yml, *.test.json)
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    files: Vec<String>,
    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Write the results to a file as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<String>,
    /// Print what happened in failed cases, and when
    #[arg(long)]
    timeline: bool,
    /// Print one JSON object per case
    #[arg(long)]
    json: bool,
}

/// The result of one case.
struct Verdict {
    file: String,
    workflow: String,
    case: String,
    /// Empty if the case passed.
    problems: Vec<String>,
    run: Value,
    timeline: String,
    elapsed: Duration,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut files = Vec::new();
    for file in &args.files {
        gather(file, &is_test, &mut files)?;
    }
    if files.is_empty() {
        bail!("there is no test in {} (*.test.yaml, *.test.yml, *.test.json)", args.files.join(", "));
    }
    let suites = files.iter().map(|file| Suite::load(file)).collect::<anyhow::Result<Vec<Suite>>>()?;
    let code = Code::new()?;
    let mut verdicts = Vec::new();
    for suite in &suites {
        let wanted = |case: &&Case| args.filter.as_ref().is_none_or(|text| case.name.contains(text));
        for case in suite.cases.iter().filter(wanted) {
            let verdict = verdict(suite, case, &code);
            show(&verdict, &args)?;
            verdicts.push(verdict);
        }
    }
    if verdicts.is_empty() {
        bail!("no case was run: the files have none, or none with this name");
    }
    if let Some(file) = &args.junit {
        std::fs::write(file, junit::report(&verdicts)).with_context(|| format!("cannot write {file}"))?;
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.problems.is_empty()).count();
    if !args.json {
        writeln!(std::io::stdout(), "{} passed, {failed} failed", verdicts.len() - failed)?;
    }
    Ok(if failed == 0 { Exit::Success } else { Exit::Failed })
}

fn verdict(suite: &Suite, case: &Case, code: &Code) -> Verdict {
    let start = Instant::now();
    let (problems, run, timeline) = match code.check_input(&suite.definition, &case.input) {
        Ok(()) => {
            let code = code.of(&suite.definition);
            let (definition, script, otherwise) = (&suite.definition, &case.script(), Otherwise::Evaluate(&code));
            let played = Play { definition, script, otherwise, max_events: MAX_EVENTS }.play();
            let lines = played.log.iter().map(|(at, fact)| timeline::line(*at, fact)).collect();
            (judge::judge(&case.expect, &played), run_of(&played), lines)
        }
        Err(refused) => (vec![format!("the input is refused: {refused}")], Value::Null, String::new()),
    };
    let (file, workflow) = (suite.file.clone(), suite.definition.name.clone());
    Verdict { file, workflow, case: case.name.clone(), problems, run, timeline, elapsed: start.elapsed() }
}

/// The run as JSON, for `--json`.
fn run_of(played: &Played) -> Value {
    let error = played.error.as_ref().map(|failure| json!({"code": failure.code, "message": failure.message}));
    json!({"status": played.status, "output": played.output, "error": error, "path": played.path,
           "took_ms": played.took.0})
}

fn show(verdict: &Verdict, args: &Args) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let Verdict { file, workflow, case, problems, run, timeline, .. } = verdict;
    if args.json {
        let line = json!({"file": file, "workflow": workflow, "case": case, "ok": problems.is_empty(),
                          "problems": problems, "run": run});
        return Ok(writeln!(out, "{line}")?);
    }
    let word = if problems.is_empty() { "ok  " } else { "FAIL" };
    writeln!(out, "{word} {}: {}", plain(file), plain(case))?;
    let timeline = if args.timeline && !problems.is_empty() { timeline.as_str() } else { "" };
    for line in problems.iter().flat_map(|problem| problem.lines()).chain(timeline.lines()) {
        writeln!(out, "     {}", plain(line))?;
    }
    Ok(())
}
