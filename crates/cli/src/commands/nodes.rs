//! `stepwell nodes`: the processes that execute steps.

use super::{Exit, lines};
use crate::backend::{Missing, with};
use crate::client::Target;
use crate::describe::{instant, length};
use stepwell_core::time::Millis;
use stepwell_server::view::NodeView;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: Target,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    with(&args.at, Missing::Refuse, async |backend| {
        let nodes = backend.nodes().await?;
        if nodes.is_empty() {
            eprintln!("no node is alive: `stepwell serve` starts one");
        }
        lines(&nodes, args.json, listed)
    })
}

fn listed(node: &NodeView) -> String {
    let NodeView { id, name, version, slots, running, joined_at, quiet_ms } = node;
    let heard = length(Millis(*quiet_ms));
    format!("{id}  {name}  {version}  {running} of {slots} running  since {}  heard {heard} ago", instant(joined_at.0))
}
