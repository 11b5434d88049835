//! The `stepwell` binary: reads the command line and hands over to `commands`.

mod backend;
mod client;
mod commands;
mod describe;
mod diff;
mod draw;
mod embedded;
mod home;
mod input;
mod logging;
mod signals;
mod source;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Planning and writing allocate on several threads at once, where the system allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable workflow engine in one binary
#[derive(Parser)]
#[command(name = "stepwell", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API from a data directory or database
    Serve(commands::serve::Args),
    /// Check a server configuration
    Config(commands::serve::ConfigArgs),
    /// Speak MCP on standard input and output, as a proxy to a server or as the server itself
    Mcp(commands::mcp::Args),
    /// Check definitions and report every fault
    Check(commands::check::Args),
    /// Draw a definition
    Graph(commands::graph::Args),
    /// Print the JSON Schema of definitions, for editors
    Schema(commands::schema::Args),
    /// Simulate a definition on virtual time, with random results, crashes and repeated events
    Simulate(commands::simulate::Args),
    /// Run the test cases beside definitions (*.test.yaml) on virtual time
    Test(commands::test::Args),
    /// Run a definition to completion in this process
    Run(commands::run::Args),
    /// Start a run for every line of standard input; report when each is on disk and when it ends
    Pipe(commands::pipe::Args),
    /// List runs, newest first
    Runs(commands::runs::ListArgs),
    /// Show a run: its steps, their attempts and what it waits for
    Show(commands::runs::ShowArgs),
    /// Show the log of a run
    Events(commands::runs::EventsArgs),
    /// List open approvals, or create a link for answering one
    Approvals(commands::approvals::ListArgs),
    /// Approve a gate or a held call of a run
    Approve(commands::approvals::AnswerArgs),
    /// Deny a gate or a held call of a run
    Deny(commands::approvals::AnswerArgs),
    /// Cancel a run
    Cancel(commands::control::CancelArgs),
    /// Retry a failed, timed out or cancelled run; steps that succeeded are kept
    Retry(commands::control::RetryArgs),
    /// Release a run from quarantine, so that it is driven again
    Release(commands::control::ReleaseArgs),
    /// Start a new run with the input of an earlier one
    Rerun(commands::trigger::RerunArgs),
    /// Create or update workflows from files and show the changes
    Apply(commands::apply::Args),
    /// Start a run on a server
    Trigger(commands::trigger::TriggerArgs),
    /// Follow a run on a server to its end
    Watch(commands::watch::Args),
    /// List workflows
    Workflows(commands::workflows::ListArgs),
    /// Enable a workflow
    Enable(commands::workflows::SwitchArgs),
    /// Disable a workflow: it refuses triggers and skips its schedule
    Disable(commands::workflows::SwitchArgs),
    /// Hold new runs of a workflow, or of one concurrency key, in the queue
    Pause(commands::workflows::HoldArgs),
    /// Release held runs
    Resume(commands::workflows::HoldArgs),
    /// Show the last and next fire times of a workflow's schedules
    Schedule(commands::workflows::SwitchArgs),
    /// Create, list, pause and revoke API keys
    Key(commands::keys::Args),
    /// Create, list and disable users
    User(commands::users::UserArgs),
    /// List, add and remove a user's grants and roles
    Grant(commands::users::GrantArgs),
    /// Manage policies: which calls are denied, need approval, are rate limited or run at most once
    Policy(commands::policy::Args),
    /// List MCP servers and accept the tools they offer
    McpServer(commands::mcp_servers::Args),
    /// List workflows that are exposed as tools and accept those of agents
    Tool(commands::tools::Args),
    /// Set, list, delete and reseal secrets
    Secret(commands::secrets::SecretArgs),
    /// Set, list and delete database connections for query steps
    Connection(commands::secrets::ConnectionArgs),
    /// Save, list and delete queries that steps use by name
    Query(commands::queries::Args),
    /// Add, list, test and remove notification channels
    Channel(commands::channels::Args),
    /// Print a one-time link that signs a browser in
    Login(commands::login::Args),
    /// List the processes that execute steps
    Nodes(commands::nodes::Args),
    /// Verify a data directory or database and report what unfinished runs wait for
    Doctor(commands::doctor::Args),
    /// Export the audit trail, verify an export, or print an anchor of it
    Audit(commands::audit::Args),
    /// Copy the store of a data directory to a file, even while it is in use
    Backup(commands::backup::Args),
    /// Restore a backup into a new data directory
    Restore(commands::restore::Args),
    /// Move everything, including unfinished runs, between data directories and databases
    Migrate(commands::migrate::Args),
    /// Measure how fast this build is on this disk, compared with a baseline
    Bench(commands::bench::Args),
    /// Evaluate JavaScript for the server that started this process
    #[command(hide = true, name = stepwell_steps::javascript::WORKER)]
    JavascriptWorker,
    /// Run an MCP server for the server that started this process, and kill all that it started when it ends
    #[command(hide = true, name = stepwell_steps::mcp::KEEPER)]
    McpServerKeeper {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Config(args) => commands::serve::config(args),
        Command::Mcp(args) => commands::mcp::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Graph(args) => commands::graph::run(args),
        Command::Schema(args) => commands::schema::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Test(args) => commands::test::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Pipe(args) => commands::pipe::run(args),
        Command::Runs(args) => commands::runs::list(args),
        Command::Show(args) => commands::runs::show(args),
        Command::Events(args) => commands::runs::events(args),
        Command::Approvals(args) => commands::approvals::list(args),
        Command::Approve(args) => commands::approvals::answer(args, true),
        Command::Deny(args) => commands::approvals::answer(args, false),
        Command::Cancel(args) => commands::control::cancel(args),
        Command::Retry(args) => commands::control::retry(args),
        Command::Release(args) => commands::control::release(args),
        Command::Rerun(args) => commands::trigger::rerun(args),
        Command::Apply(args) => commands::apply::run(args),
        Command::Trigger(args) => commands::trigger::trigger(args),
        Command::Watch(args) => commands::watch::run(args),
        Command::Workflows(args) => commands::workflows::list(args),
        Command::Enable(args) => commands::workflows::enable(args, true),
        Command::Disable(args) => commands::workflows::enable(args, false),
        Command::Pause(args) => commands::workflows::hold(args, true),
        Command::Resume(args) => commands::workflows::hold(args, false),
        Command::Schedule(args) => commands::workflows::schedule(args),
        Command::Key(args) => commands::keys::run(args),
        Command::User(args) => commands::users::user(args),
        Command::Grant(args) => commands::users::grant(args),
        Command::Policy(args) => commands::policy::run(args),
        Command::McpServer(args) => commands::mcp_servers::run(args),
        Command::Tool(args) => commands::tools::run(args),
        Command::Secret(args) => commands::secrets::secret(args),
        Command::Connection(args) => commands::secrets::connection(args),
        Command::Query(args) => commands::queries::run(args),
        Command::Channel(args) => commands::channels::run(args),
        Command::Login(args) => commands::login::run(args),
        Command::Nodes(args) => commands::nodes::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Audit(args) => commands::audit::run(args),
        Command::Backup(args) => commands::backup::run(args),
        Command::Restore(args) => commands::restore::run(args),
        Command::Migrate(args) => commands::migrate::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::McpServerKeeper { command } => match stepwell_steps::mcp::keep(&command) {
            Ok(status) => std::process::exit(status),
            Err(error) => Err(error.into()),
        },
        Command::JavascriptWorker => {
            stepwell_steps::javascript::work().map(|()| commands::Exit::Success).map_err(Into::into)
        }
    };
    match result {
        Ok(code) => code.into(),
        // The reader of our output closed the pipe (`stepwell graph … | head`), which is not an error.
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
