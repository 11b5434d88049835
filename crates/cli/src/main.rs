//! The `stepwell` binary: reads the command line and hands over to `commands`.

mod commands;
mod draw;
mod embedded;
mod home;
mod input;
mod logging;
mod outline;
mod signals;
mod source;
mod words;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Planning and writing allocate on several threads at once, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable workflow engine in one binary.
#[derive(Parser)]
#[command(name = "stepwell", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API on a data directory until told to stop
    Serve(commands::serve::Args),
    /// Look at a server's configuration
    Config(commands::serve::ConfigArgs),
    /// Check definitions and list everything that is wrong with them
    Check(commands::check::Args),
    /// Draw a definition
    Graph(commands::graph::Args),
    /// Run a definition on virtual time, with random results, crashes and repeated events
    Simulate(commands::simulate::Args),
    /// Run a definition to its end, here and now, on a data directory
    Run(commands::run::Args),
    /// Start a run for every line of standard input, and say when each is on disk and when it ends
    Pipe(commands::pipe::Args),
    /// List runs, newest first
    Runs(commands::look::RunsArgs),
    /// Show a run: its steps, their attempts, and what it waits for
    Show(commands::look::ShowArgs),
    /// Show the log of a run
    Events(commands::look::EventsArgs),
    /// Approve at a gate of a run
    Approve(commands::control::AnswerArgs),
    /// Deny at a gate of a run
    Deny(commands::control::AnswerArgs),
    /// Cancel a run
    Cancel(commands::control::CancelArgs),
    /// Go on with a run that failed, timed out or was cancelled: what did not succeed runs again
    Retry(commands::control::RetryArgs),
    /// Look whether everything in a data directory is sound, and why runs are not finished
    Doctor(commands::doctor::Args),
    /// Measure how fast this build is on this disk, beside what the disk alone can do
    Bench(commands::bench::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Config(args) => commands::serve::config(args),
        Command::Check(args) => commands::check::run(args),
        Command::Graph(args) => commands::graph::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Pipe(args) => commands::pipe::run(args),
        Command::Runs(args) => commands::look::runs(args),
        Command::Show(args) => commands::look::show(args),
        Command::Events(args) => commands::look::events(args),
        Command::Approve(args) => commands::control::answer(args, true),
        Command::Deny(args) => commands::control::answer(args, false),
        Command::Cancel(args) => commands::control::cancel(args),
        Command::Retry(args) => commands::control::retry(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Bench(args) => commands::bench::run(args),
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
