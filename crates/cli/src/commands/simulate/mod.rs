//! `stepwell simulate`: runs a definition on virtual time, with results that are scripted or drawn from a seed, and
//! with crashes, repeated and late events unless `--calm` is given. Invariants are checked after every event.

mod driver;
mod rng;
mod script;
pub mod timeline;

use super::Exit;
use crate::draw::plain;
use crate::home::quoted;
use crate::input::input;
use crate::source;
use driver::{Driver, Ended};
use rng::Rng;
use script::Script;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;

#[derive(clap::Args)]
pub struct Args {
    /// Definition file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Seed of every random choice; the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of runs, each with the next seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Input: JSON, @FILE, or key=value (repeatable; default: generated from what the definition reads)
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    /// Outcome of a step: STEP=ok | ok:JSON | fail | fail:STATUS | timeout | approve | deny | call:JSON | never
    #[arg(long = "on", value_name = "STEP=OUTCOME")]
    on: Vec<String>,
    /// Disable crashes, repeated and late events, and random failures
    #[arg(long)]
    calm: bool,
    /// Print one JSON object per run
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let Some(definition) = source::load(&args.file)? else { return Ok(Exit::BadInput) };
    let given = if args.input.is_empty() { None } else { Some(input(&args.input)?) };
    let script = Script::parse(&args.on, &definition.graph)?;
    let mut out = std::io::stdout().lock();
    let mut ends: BTreeMap<&'static str, u32> = BTreeMap::new();
    let mut events = 0u64;
    for n in 0..args.runs {
        let seed = args.seed.wrapping_add(u64::from(n));
        let mut rng = Rng::new(seed);
        let input = given.clone().unwrap_or_else(|| script.input(&mut rng));
        let driver = Driver::new(&definition, &script, rng, args.calm);
        let (ended, timeline) = driver.run(input);
        match ended {
            Ok(Ended { status, output, steps, events: count }) => {
                *ends.entry(status).or_default() += 1;
                events += count;
                if args.json {
                    writeln!(
                        out,
                        "{}",
                        json!({"seed": seed, "status": status, "output": output, "steps": steps, "events": count})
                    )?;
                } else if args.runs == 1 {
                    write!(out, "{}", plain(&timeline))?;
                    writeln!(out, "{status} after {count} events (seed {seed})")?;
                    if output != Value::Null {
                        writeln!(out, "output {}", plain(&format!("{output:#}")))?;
                    }
                }
            }
            Err(broken) => {
                if args.json {
                    writeln!(out, "{}", json!({"seed": seed, "broken": broken.to_string()}))?;
                } else {
                    write!(out, "{timeline}")?;
                }
                out.flush()?;
                eprintln!("error: seed {seed}: {}", plain(&broken.to_string()));
                eprintln!("to reproduce: {}", plain(&reproduce(&args, seed)));
                return Ok(Exit::Failed);
            }
        }
    }
    if args.runs > 1 && !args.json {
        let ends: Vec<String> = ends.iter().map(|(status, count)| format!("{count} {status}")).collect();
        writeln!(out, "{} runs, {events} events: {}; nothing broke", args.runs, ends.join(", "))?;
    }
    Ok(Exit::Success)
}

/// The command that reproduces this run.
fn reproduce(args: &Args, seed: u64) -> String {
    let mut command = vec!["stepwell simulate".to_string(), quoted(&args.file), format!("--seed {seed}")];
    command.extend(args.input.iter().map(|input| format!("--input {}", quoted(input))));
    command.extend(args.on.iter().map(|on| format!("--on {}", quoted(on))));
    command.extend(args.calm.then(|| "--calm".to_string()));
    command.join(" ")
}
