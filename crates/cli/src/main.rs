//! The `stepwell` binary: reads the command line and hands over to `commands`.

mod backend;
mod client;
mod commands;
mod diff;
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
    /// Speak MCP on standard input and output, for a program that starts this: in front of a server, or as one
    Mcp(commands::mcp::Args),
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
    /// List what people are asked, or make a link by which somebody can answer
    Approvals(commands::gates::ListArgs),
    /// Approve at a gate of a run, or a call that is held
    Approve(commands::gates::AnswerArgs),
    /// Deny at a gate of a run, or a call that is held
    Deny(commands::gates::AnswerArgs),
    /// Cancel a run
    Cancel(commands::control::CancelArgs),
    /// Go on with a run that failed, timed out or was cancelled: what did not succeed runs again
    Retry(commands::control::RetryArgs),
    /// Start a fresh run with the input of another
    Rerun(commands::start::RerunArgs),
    /// Make workflows be as files say; shows what changes
    Apply(commands::apply::Args),
    /// Start a run on a server
    Trigger(commands::start::TriggerArgs),
    /// Watch a run of a server to its end
    Watch(commands::watch::Args),
    /// List workflows
    Workflows(commands::workflows::ListArgs),
    /// Let a workflow be started again
    Enable(commands::workflows::SwitchArgs),
    /// Let a workflow refuse triggers and skip its schedule
    Disable(commands::workflows::SwitchArgs),
    /// Hold new runs of a workflow, or of one concurrency key, in the queue
    Pause(commands::workflows::HoldArgs),
    /// Let go what was held
    Resume(commands::workflows::HoldArgs),
    /// Show when a workflow will start by itself
    Schedule(commands::workflows::SwitchArgs),
    /// Make, list and end API keys
    Key(commands::people::KeyArgs),
    /// Make, list and disable users
    User(commands::people::UserArgs),
    /// Give users rights, and take them back
    Grant(commands::people::GrantArgs),
    /// Say which calls are denied, need approval, are slowed down or are never made twice
    Policy(commands::policy::Args),
    /// MCP servers whose tools steps can call: list them, accept what they offer
    McpServer(commands::servers::Args),
    /// Set, list and delete secrets, and seal them anew under another master key
    Secret(commands::secrets::SecretArgs),
    /// Set, list and delete the databases that query steps use
    Connection(commands::secrets::ConnectionArgs),
    /// Save, list and delete queries that steps use by name
    Query(commands::queries::Args),
    /// Make, list, try and remove channels that notifications go to
    Channel(commands::channels::Args),
    /// Print a link that signs a browser in, once
    Login(commands::people::LoginArgs),
    /// List the processes that execute steps
    Nodes(commands::nodes::Args),
    /// Look whether everything in a data directory or database is sound, and why runs are not finished
    Doctor(commands::doctor::Args),
    /// Copy the store of a data directory to a file, while it is in use or not
    Backup(commands::backup::Args),
    /// Make a copy the store of a new data directory
    Restore(commands::restore::Args),
    /// Take everything from a data directory to a database, or back, with runs that are under way
    Migrate(commands::migrate::Args),
    /// Measure how fast this build is on this disk, beside what the disk alone can do
    Bench(commands::bench::Args),
    /// Evaluate code for a server that started this process
    #[command(hide = true, name = stepwell_steps::javascript::WORKER)]
    JavascriptWorker,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Config(args) => commands::serve::config(args),
        Command::Mcp(args) => commands::mcp::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Graph(args) => commands::graph::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Pipe(args) => commands::pipe::run(args),
        Command::Runs(args) => commands::look::runs(args),
        Command::Show(args) => commands::look::show(args),
        Command::Events(args) => commands::look::events(args),
        Command::Approvals(args) => commands::gates::list(args),
        Command::Approve(args) => commands::gates::answer(args, true),
        Command::Deny(args) => commands::gates::answer(args, false),
        Command::Cancel(args) => commands::control::cancel(args),
        Command::Retry(args) => commands::control::retry(args),
        Command::Rerun(args) => commands::start::rerun(args),
        Command::Apply(args) => commands::apply::run(args),
        Command::Trigger(args) => commands::start::trigger(args),
        Command::Watch(args) => commands::watch::run(args),
        Command::Workflows(args) => commands::workflows::list(args),
        Command::Enable(args) => commands::workflows::enable(args, true),
        Command::Disable(args) => commands::workflows::enable(args, false),
        Command::Pause(args) => commands::workflows::hold(args, true),
        Command::Resume(args) => commands::workflows::hold(args, false),
        Command::Schedule(args) => commands::workflows::schedule(args),
        Command::Key(args) => commands::people::key(args),
        Command::User(args) => commands::people::user(args),
        Command::Grant(args) => commands::people::grant(args),
        Command::Policy(args) => commands::policy::run(args),
        Command::McpServer(args) => commands::servers::run(args),
        Command::Secret(args) => commands::secrets::secret(args),
        Command::Connection(args) => commands::secrets::connection(args),
        Command::Query(args) => commands::queries::run(args),
        Command::Channel(args) => commands::channels::run(args),
        Command::Login(args) => commands::people::login(args),
        Command::Nodes(args) => commands::nodes::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Backup(args) => commands::backup::run(args),
        Command::Restore(args) => commands::restore::run(args),
        Command::Migrate(args) => commands::migrate::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::JavascriptWorker => {
            stepwell_steps::javascript::work().map(|()| commands::Exit::Success).map_err(Into::into)
        }
    };
    match result {
        Ok(code) => code.into(),
        // The reader of our output went away (`stepwell graph … | head`): not an error of ours.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", draw::plain(&format!("{error:#}")));
            let refusal = error.downcast_ref::<client::Refusal>();
            refusal.map_or(commands::Exit::BadInput, |refusal| refusal.exit).into()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
