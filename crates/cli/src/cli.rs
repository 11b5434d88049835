//! The commands and what each is for. Their arguments are in `commands`; how the help is laid out is in `help`.

use crate::commands;
use clap::{Parser, Subcommand};

/// The version, and of a release build the commit and its day.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("STEPWELL_BUILT"));

/// A durable workflow engine in one binary
#[derive(Parser)]
#[command(name = "stepwell", version = VERSION, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve the API from a data directory or database
    Serve(commands::serve::Args),
    /// Check a server configuration
    Config(commands::serve::ConfigArgs),
    /// Speak MCP on standard input and output, for a client that starts it
    Mcp(commands::mcp::Args),
    /// Check definitions and report every fault; with a server also against what it has
    Check(commands::check::Args),
    /// Draw a definition
    Graph(commands::graph::Args),
    /// Print the JSON Schema of definitions, for editors, or the description of the API
    Schema(commands::schema::Args),
    /// Simulate a definition on virtual time, with random results and crashes
    Simulate(commands::simulate::Args),
    /// Run the test cases beside definitions (*.test.yaml) on virtual time
    Test(commands::test::Args),
    /// Run a definition to completion in this process
    Run(commands::run::Args),
    /// Start a run for every line of standard input and report each end
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
    /// Show, compare, delete and restore workflows
    Workflow(commands::workflow::Args),
    /// Enable a workflow
    Enable(commands::workflows::SwitchArgs),
    /// Disable a workflow: it refuses triggers and skips its schedule
    Disable(commands::workflows::SwitchArgs),
    /// Hold new runs of a workflow, or of one concurrency key, in the queue
    Pause(commands::workflows::HoldArgs),
    /// Release held runs
    Resume(commands::workflows::HoldArgs),
    /// Show the schedules of a workflow with their next times; add and remove your own
    Schedule(commands::workflows::ScheduleArgs),
    /// Create, list, pause and revoke API keys
    Key(commands::keys::Args),
    /// Create, list and disable users
    User(commands::users::UserArgs),
    /// List, add and remove a user's grants and roles
    Grant(commands::users::GrantArgs),
    /// Manage which calls are denied, need approval or are rate limited
    Policy(commands::policy::Args),
    /// List MCP servers and accept the tools they offer
    McpServer(commands::mcp_servers::Args),
    /// Review, accept and refuse what agents write
    Review(commands::reviews::Args),
    /// List workflows that are exposed as tools
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
    /// Print a script that completes commands in a shell
    Completion(commands::completion::Args),
    /// Print the manual, or write a page for every command
    Man(commands::man::Args),
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
