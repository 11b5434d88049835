//! `stepwell restore`: restores a backup into a new data directory.

use super::Exit;
use super::backup::{Done, Keys, beside, embedded_only};
use crate::home::Data;
use std::path::PathBuf;
use std::time::Instant;
use stepwell_store::sqlite::backup;

#[derive(clap::Args)]
pub struct Args {
    /// Backup file; key files beside it are restored too
    from: PathBuf,
    #[command(flatten)]
    data: Data,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    embedded_only(&args.data, "pg_restore")?;
    let directory = args.data.directory()?;
    let (from, to) = (|name: &str| beside(&args.from, name), |name: &str| directory.join(name));
    Keys::check(from, to)?;
    let stats = backup::restore(&args.from, &directory)?;
    let keys = Keys::copy(from, to)?.keep();
    Done { from: &args.from, to: &directory, stats, keys, begun }.print(args.json)
}
