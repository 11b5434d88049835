//! `stepwell simulate`: a definition on virtual time, with results that are scripted or drawn from a seed, and with
//! crashes, repeated and late events unless asked to be calm. What must always hold is checked after every event.

mod chance;
mod driver;
mod script;
mod timeline;

use super::Exit;
use crate::draw::plain;
use crate::source;
use anyhow::Context;
use chance::Chance;
use driver::{Driver, Ended};
use script::Script;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;

#[derive(clap::Args)]
pub struct Args {
    /// The definition; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Decides every random choice; the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs, each with the next seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// JSON, @FILE, or key=value (may be repeated); without it, one with what the definition reads is made up
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,
    /// What becomes of a step: STEP=ok | ok:JSON | fail | fail:STATUS | timeout | approve | deny | call:JSON | never
    #[arg(long = "on", value_name = "STEP=OUTCOME")]
    on: Vec<String>,
    /// No crashes, no repeated or late events, no random failures
    #[arg(long)]
    calm: bool,
    /// One JSON document per run
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
        let mut chance = Chance::new(seed);
        let input = given.clone().unwrap_or_else(|| script.input(&mut chance));
        let driver = Driver::new(&definition, &script, chance, args.calm);
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
                eprintln!("to see it again: {}", plain(&again(&args, seed)));
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

/// The command that plays this one run again.
fn again(args: &Args, seed: u64) -> String {
    let mut words = vec!["stepwell simulate".to_string(), quoted(&args.file), format!("--seed {seed}")];
    words.extend(args.input.iter().map(|input| format!("--input {}", quoted(input))));
    words.extend(args.on.iter().map(|on| format!("--on {}", quoted(on))));
    words.extend(args.calm.then(|| "--calm".to_string()));
    words.join(" ")
}

/// For a shell.
fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=@:".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        text.to_string()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// `JSON`, `@FILE`, or any number of `key=value`, whose values are JSON where they are JSON.
fn input(given: &[String]) -> anyhow::Result<Value> {
    let mut all = json!({});
    for text in given {
        if let Some(path) = text.strip_prefix('@') {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            all = serde_json::from_str(&text).with_context(|| format!("{path} is not JSON"))?;
        } else if text.trim_start().starts_with(['{', '[', '"']) {
            all = serde_json::from_str(text).with_context(|| format!("--input {text} is not JSON"))?;
        } else if let Ok(value) = serde_json::from_str(text) {
            all = value;
        } else {
            let (key, value) =
                text.split_once('=').with_context(|| format!("--input {text}: expected JSON, @FILE or key=value"))?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_string()));
            let fields =
                all.as_object_mut().context("--input key=value cannot be added to something that is no object")?;
            fields.insert(key.to_string(), value);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_json_or_pairs_whose_values_are_json_where_they_can_be() {
        let check = |given: &[&str], expected: Value| {
            let given: Vec<String> = given.iter().map(|s| s.to_string()).collect();
            assert_eq!(input(&given).unwrap(), expected);
        };
        check(&[], json!({}));
        check(&["n=5", "name=ann", "list=[1]"], json!({"n": 5, "name": "ann", "list": [1]}));
        check(&["{\"a\": 1}", "b=2"], json!({"a": 1, "b": 2}));
        check(&["5"], json!(5));
        check(&["null"], json!(null));
        assert!(input(&["nonsense".into()]).is_err());
        assert!(input(&["{broken".into()]).is_err());
    }
}
