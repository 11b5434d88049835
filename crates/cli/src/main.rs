//! The `stepwell` binary: reads the command line and hands over to `commands`.

mod commands;
mod draw;
mod outline;
mod source;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A durable workflow engine in one binary.
#[derive(Parser)]
#[command(name = "stepwell", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure how fast this build is on this disk, beside what the disk alone can do
    Bench(commands::bench::Args),
    /// Check definitions and list everything that is wrong with them
    Check(commands::check::Args),
    /// Draw a definition
    Graph(commands::graph::Args),
    /// Run a definition on virtual time, with random results, crashes and repeated events
    Simulate(commands::simulate::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(args) => commands::bench::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Graph(args) => commands::graph::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
    };
    match result {
        Ok(code) => code.into(),
        // The reader of our output went away (`stepwell graph … | head`): not an error of ours.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", draw::plain(&format!("{error:#}")));
            commands::Exit::BadInput.into()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
