//! `stepwell check`: reports every fault of definition files, of their code too; and with a server, what they use that
//! the server does not have.

use super::{Exit, document};
use crate::client::{Client, Refusal, Target};
use crate::draw::plain;
use crate::source::Source;
use crate::{embedded, logging};
use serde::Serialize;
use std::io::Write;
use stepwell_core::definition::Definition;
use stepwell_core::graph::{Kind, Step};
use stepwell_formats::Faults;
use stepwell_server::view::FaultView;

#[derive(clap::Args)]
pub struct Args {
    /// Files to check; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Check only the files, even if there is a server
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per file
    #[arg(long)]
    json: bool,
}

/// The result for one file.
#[derive(Serialize)]
struct Report {
    file: String,
    ok: bool,
    #[serde(flatten)]
    read: Option<Read>,
    faults: Vec<FaultView>,
    /// Faults that are not listed.
    more: usize,
    warnings: Vec<FaultView>,
    /// For people.
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
struct Read {
    name: String,
    dialect: &'static str,
    steps: usize,
}

/// What is checked, and against what.
struct Checker {
    kinds: stepwell_engine::Kinds,
    server: Option<Client>,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    embedded::runtime()?.block_on(async {
        let server = if args.offline { None } else { args.at.server().await? };
        let kinds = stepwell_steps::kinds(stepwell_steps::Config::default());
        let checker = Checker { kinds, server };
        let mut exit = Exit::Success;
        for file in &args.files {
            let report = checker.check(file).await?;
            if !report.ok {
                exit = Exit::BadInput;
            }
            match args.json {
                true => document(&report)?,
                false => write!(std::io::stdout().lock(), "{}", report.text)?,
            }
        }
        Ok(exit)
    })
}

impl Checker {
    /// An unreadable file is a fault like any other, so that one bad path does not hide the results of the other files.
    async fn check(&self, file: &str) -> anyhow::Result<Report> {
        let source = match Source::read(file) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("{error:#}");
                let text = format!("error: {}\n", plain(&message));
                let fault = FaultView { message, code: Some("unreadable".into()), ..FaultView::default() };
                return Ok(Report::bad(file, vec![fault], 0, text));
            }
        };
        let stepwell_formats::Checked { definition, warnings } =
            stepwell_formats::check(&source.bytes, Some(&source.name));
        let warnings: Vec<FaultView> = warnings.iter().map(FaultView::from).collect();
        let definition = match definition {
            Ok(definition) => definition,
            Err(faults) => return Ok(Report { warnings, ..Report::faulty(file, &source, &faults) }),
        };
        let text = String::from_utf8_lossy(&source.bytes);
        let code = stepwell_engine::commands::check_code(&self.kinds, &definition, &text).await;
        if !code.is_empty() {
            return Ok(Report { warnings, ..Report::faulty(file, &source, &Faults::of(code, 0)) });
        }
        let mut report = Report::good(file, &source, &definition, warnings);
        if let Some(server) = &self.server {
            report.ask(server, &source).await?;
        }
        Ok(report)
    }
}

impl Report {
    /// Adds what a server says to a definition that is right in itself.
    async fn ask(&mut self, server: &Client, source: &Source) -> anyhow::Result<()> {
        match server.missing(&String::from_utf8_lossy(&source.bytes)).await {
            Ok(missing) => {
                missing.iter().for_each(|warning| self.text.push_str(&line(source, "warning", warning)));
                self.warnings.extend(missing);
            }
            Err(error) => match Refusal::faults(&error) {
                [] => return Err(error),
                faults => {
                    self.text = faults.iter().map(|fault| line(source, "error", fault)).collect();
                    (self.ok, self.read, self.faults) = (false, None, faults.to_vec());
                }
            },
        }
        Ok(())
    }

    fn good(file: &str, source: &Source, definition: &Definition, warnings: Vec<FaultView>) -> Report {
        let written = |step: &&Step| !matches!(step.def.kind, Kind::Loop { .. });
        let steps = definition.graph.steps.iter().filter(written).count();
        let (name, dialect) = (definition.name.clone(), definition.graph.dialect.name());
        let counted = if steps == 1 { "1 step".to_string() } else { format!("{steps} steps") };
        let ok = format!("{}: ok: {name} ({dialect}, {counted})\n", plain(&source.name));
        let text = source.warnings() + &ok;
        let read = Some(Read { name, dialect, steps });
        Report { file: file.into(), ok: true, read, faults: Vec::new(), more: 0, warnings, text }
    }

    fn faulty(file: &str, source: &Source, faults: &Faults) -> Report {
        let list = faults.list.iter().map(FaultView::from).collect();
        Report::bad(file, list, faults.more, source.explain(faults))
    }

    fn bad(file: &str, faults: Vec<FaultView>, more: usize, text: String) -> Report {
        Report { file: file.into(), ok: false, read: None, faults, more, warnings: Vec::new(), text }
    }
}

fn line(source: &Source, what: &str, fault: &FaultView) -> String {
    let FaultView { path, message, code, hint, line, column, fix: _ } = fault;
    let place = line.zip(*column).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let code = code.as_ref().map(|code| format!("  [{code}]")).unwrap_or_default();
    plain(&format!("{}{place}: {what}: {path}{message}{hint}{code}\n", source.name))
}
