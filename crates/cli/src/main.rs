//! The `stepwell` binary: reads the command line and hands over to `commands`.

mod backend;
mod cli;
mod client;
mod commands;
mod describe;
mod draw;
mod embedded;
mod help;
mod home;
mod input;
mod logging;
mod signals;
mod source;

use clap::FromArgMatches;
use cli::{Cli, Command};
use std::process::ExitCode;

/// Planning and writing allocate on several threads at once, where the system allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = help::command().get_matches();
    let as_json = help::wants_json(&matches);
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    };
    match run(command) {
        Ok(code) => code.into(),
        // The reader of our output closed the pipe (`stepwell graph … | head`), which is not an error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report(&error, as_json).into(),
    }
}

/// Reports an error on standard error, as JSON if the command was asked for JSON.
fn report(error: &anyhow::Error, as_json: bool) -> commands::Exit {
    let refusal = error.downcast_ref::<client::Refusal>();
    let message = format!("{error:#}");
    if as_json {
        let code = refusal.map_or("invalid", |refusal| refusal.code());
        eprintln!("{}", serde_json::json!({"error": {"code": code, "message": message}}));
    } else {
        eprintln!("error: {}", draw::plain(&message));
    }
    refusal.map_or(commands::Exit::BadInput, |refusal| refusal.exit)
}

fn run(command: Command) -> anyhow::Result<commands::Exit> {
    match command {
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
        Command::Workflow(args) => commands::workflow::run(args),
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
        Command::Review(args) => commands::reviews::run(args),
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
        Command::Completion(args) => commands::completion::run(args),
        Command::Man(args) => commands::man::run(args),
        Command::McpServerKeeper { command } => match stepwell_steps::mcp::keep(&command) {
            Ok(status) => std::process::exit(status),
            Err(error) => Err(error.into()),
        },
        Command::JavascriptWorker => {
            stepwell_steps::javascript::work().map(|()| commands::Exit::Success).map_err(Into::into)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
