//! `stepwell migrate`: takes a whole installation from a directory to a database, back, or to another.

use super::{Exit, document};
use crate::{embedded, home, logging};
use serde_json::json;
use std::io::Write as _;
use std::time::{Duration, Instant};
use stepwell_store::{CopiedTable, Location, transfer};

#[derive(clap::Args)]
pub struct Args {
    /// What is taken: a data directory, or `postgres://…`
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Where it is taken: a directory or a database with nothing in it
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    let begun = Instant::now();
    let (from, to) = (home::location(&args.from)?, home::location(&args.to)?);
    let taken = embedded::runtime()?.block_on(transfer(from.clone(), to.clone()))?;
    let done = Done { from, to, taken, took: begun.elapsed() };
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
    taken: Vec<CopiedTable>,
    took: Duration,
}

impl Done {
    fn rows(&self) -> u64 {
        self.taken.iter().map(|taken| taken.rows).sum()
    }

    fn json(&self) -> serde_json::Value {
        let table = |taken: &CopiedTable| json!({"table": taken.table, "rows": taken.rows, "sha256": taken.digest});
        json!({
            "from": self.from.to_string(),
            "to": self.to.to_string(),
            "rows": self.rows(),
            "tables": self.taken.iter().map(table).collect::<Vec<_>>(),
            "verified": true,
            "milliseconds": self.took.as_millis() as u64,
        })
    }

    fn page(&self) -> String {
        let Done { from, to, taken, took } = self;
        let mut page: String = taken.iter().map(|taken| format!("{:>12}  {}\n", taken.rows, taken.table)).collect();
        let (rows, took) = (self.rows(), took.as_secs_f64());
        page += &format!("{from} -> {to}: {rows} rows in {took:.1} s, read back and verified\n");
        page +=
            &format!("Serve {to} from now on. {from} is as it was: never serve both, or runs are executed twice.\n");
        if let Location::Directory(directory) = from {
            if directory.join("master.key").exists() {
                let key = directory.join("master.key");
                page +=
                    &format!("Secrets are sealed with {}: name it as STEPWELL_MASTER_KEY_FILE there.\n", key.display());
            }
            let directory = directory.display();
            page += &format!("All keys go on working; key files, if there are any, stay in {directory}.\n");
        }
        page
    }
}
