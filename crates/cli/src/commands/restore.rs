//! `stepwell restore`: a copy that `stepwell backup` made becomes the store of a new data directory.

use super::Exit;
use super::backup::{Done, Keys, beside, embedded_only};
use crate::home::Data;
use std::path::PathBuf;
use std::time::Instant;
use stepwell_store::sqlite::backup;

#[derive(clap::Args)]
pub struct Args {
    /// The copy; key files beside it are taken along
    from: PathBuf,
    #[command(flatten)]
    data: Data,
    /// One JSON document
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
    Done { from: &args.from, to: &directory, stats, keys, begun }.tell(args.json)
}
