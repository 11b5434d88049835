//! `stepwell migrate`: moves a whole installation between directories and databases.

use super::{Exit, document};
use crate::{embedded, home, logging};
use serde_json::json;
use std::io::Write as _;
use std::time::{Duration, Instant};
use stepwell_store::{CopiedTable, Location, transfer};

#[derive(clap::Args)]
pub struct Args {
    /// Source: a data directory or `postgres://…`
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Target: an empty directory or database
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    let begun = Instant::now();
    let (from, to) = (home::location(&args.from)?, home::location(&args.to)?);
    let copied = embedded::runtime()?.block_on(transfer(from.clone(), to.clone()))?;
    let done = Done { from, to, copied, took: begun.elapsed() };
    if args.json {
        document(&done.json())?;
    } else {
        std::io::stdout().lock().write_all(done.page().as_bytes())?;
    }
    Ok(Exit::Success)
}

struct Done {
    from: Location,
    to: Location,
    copied: Vec<CopiedTable>,
    took: Duration,
}

impl Done {
    fn rows(&self) -> u64 {
        self.copied.iter().map(|copied| copied.rows).sum()
    }

    fn json(&self) -> serde_json::Value {
        let table = |copied: &CopiedTable| json!({"table": copied.table, "rows": copied.rows, "sha256": copied.digest});
        json!({
            "from": self.from.to_string(),
            "to": self.to.to_string(),
            "rows": self.rows(),
            "tables": self.copied.iter().map(table).collect::<Vec<_>>(),
            "verified": true,
            "milliseconds": self.took.as_millis() as u64,
        })
    }

    fn page(&self) -> String {
        let Done { from, to, copied, took } = self;
        let mut page: String = copied.iter().map(|copied| format!("{:>12}  {}\n", copied.rows, copied.table)).collect();
        let (rows, took) = (self.rows(), took.as_secs_f64());
        page += &format!("{from} -> {to}: {rows} rows in {took:.1} s, read back and verified\n");
        page +=
            &format!("Serve {to} from now on. {from} is unchanged: never serve both, or runs are executed twice.\n");
        if let Location::Directory(directory) = from {
            if directory.join("master.key").exists() {
                let key = directory.join("master.key");
                page +=
                    &format!("Secrets are sealed with {}: set STEPWELL_MASTER_KEY_FILE to it there.\n", key.display());
            }
            let directory = directory.display();
            page += &format!("All keys keep working; key files, if any, stay in {directory}.\n");
        }
        page
    }
}
