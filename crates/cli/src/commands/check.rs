//! `stepwell check`: reports every fault of definition files.

use super::Exit;
use crate::draw::plain;
use crate::source::Source;
use serde_json::{Value, json};
use std::io::Write;
use stepwell_core::graph::{Dialect, Kind, Step};

#[derive(clap::Args)]
pub struct Args {
    /// Files to check; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Print one JSON document with a list of results
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut results = Vec::new();
    let mut exit = Exit::Success;
    let mut out = std::io::stdout().lock();
    for file in &args.files {
        let (result, text) = check(file);
        if result["ok"] != true {
            exit = Exit::BadInput;
        }
        if !args.json {
            write!(out, "{text}")?;
        }
        results.push(result);
    }
    if args.json {
        writeln!(out, "{:#}", Value::Array(results))?;
    }
    Ok(exit)
}

/// The result as JSON and as text. An unreadable file is a fault like any other, so that one bad path does not hide the
/// results of the other files.
fn check(file: &str) -> (Value, String) {
    let source = match Source::read(file) {
        Ok(source) => source,
        Err(error) => {
            let message = format!("{error:#}");
            let faults = json!([{"path": "", "code": "unreadable", "message": message}]);
            let text = format!("error: {}\n", plain(&message));
            return (json!({"file": file, "ok": false, "faults": faults, "more": 0}), text);
        }
    };
    let stepwell_formats::Checked { definition, warnings } = stepwell_formats::check(&source.bytes, Some(&source.name));
    match definition {
        Ok(definition) => {
            let dialect = match definition.graph.dialect {
                Dialect::Tasks => "tasks",
                Dialect::Flow => "flow",
                Dialect::Graph => "graph",
            };
            let written = |step: &&Step| !matches!(step.def.kind, Kind::Loop { .. });
            let steps = definition.graph.steps.iter().filter(written).count();
            let counted = if steps == 1 { "1 step".to_string() } else { format!("{steps} steps") };
            let text = source.warnings()
                + &format!("{}: ok: {} ({dialect}, {counted})\n", plain(&source.name), definition.name);
            let mut result =
                json!({"file": file, "ok": true, "name": definition.name, "dialect": dialect, "steps": steps});
            if !warnings.is_empty() {
                result["warnings"] = json!(warnings);
            }
            (result, text)
        }
        Err(faults) => {
            let text = source.explain(&faults);
            let mut result = json!({"file": file, "ok": false, "faults": faults.list, "more": faults.more});
            if !warnings.is_empty() {
                result["warnings"] = json!(warnings);
            }
            (result, text)
        }
    }
}
