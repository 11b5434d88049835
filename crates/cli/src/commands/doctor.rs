//! `stepwell doctor`: verifies the store, and reports what unfinished runs wait for and how much space they take.

use super::Exit;
use crate::draw::plain;
use crate::home::Data;
use crate::signals::Signals;
use crate::{describe, embedded, logging};
use anyhow::bail;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use stepwell_engine::doctor::{self, EvidenceReport, Report};
use stepwell_engine::{Clock, SealedStore, SystemClock};
use stepwell_store::{Location, Stats, Store};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// Remove finished runs past their retention, if nothing is wrong
    #[arg(long)]
    purge: bool,
    /// Also check the audit trail against anchors, one per line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "audit")]
    anchor: Option<PathBuf>,
    /// Verify only the audit trail
    #[arg(long, conflicts_with = "purge")]
    audit: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

struct Found {
    report: Report,
    stats: Stats,
    purgeable: u64,
    /// Rows.
    purged: Option<u64>,
}

/// Verifies the audit trail of each organisation, since each has its own hash chain.
fn audit(args: Args) -> anyhow::Result<Exit> {
    let checked = embedded::runtime()?.block_on(async {
        let home = args.data.open_to_look().await?;
        let mut checked = Vec::new();
        for (org, name) in home.store.organisations().await? {
            checked.push((name, doctor::verify_audit(&*home.store, org).await?));
        }
        anyhow::Ok(checked)
    })?;
    let whole = checked.iter().all(|(_, verdict)| verdict.broken_at.is_none());
    for (name, verdict) in &checked {
        let found = match verdict.broken_at {
            Some(row) => format!("row {row} was tampered with: its hash does not match"),
            None => format!("{} rows, nothing is wrong", verdict.rows),
        };
        match args.json {
            true => println!("{}", json!({"organisation": name, "rows": verdict.rows, "broken_at": verdict.broken_at})),
            false => println!("{}: {found}", plain(name)),
        }
    }
    Ok(if whole { Exit::Success } else { Exit::Failed })
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    logging::start();
    if args.audit {
        return audit(args);
    }
    let (location, found) = embedded::runtime()?.block_on(async {
        let home = args.data.open_to_look().await?;
        if home.copy.is_some() && args.purge {
            bail!("another process uses the directory: stop it, or leave out --purge (a server purges by itself)");
        }
        let anchors = args.anchor.as_deref().map(super::audit::anchors).transpose()?.unwrap_or_default();
        let (mut signals, sealed) = (Signals::listen()?, home.sealed_store()?);
        // An interrupted examination leaves no copy behind.
        let found = tokio::select! {
            found = examine(&sealed, &*home.store, args.purge, &anchors) => Some(found?),
            () = signals.next() => None,
        };
        if home.copy.is_some() {
            eprintln!("another process uses the directory, so a copy of its present state was examined");
        }
        anyhow::Ok((home.location, found))
    })?;
    let Some(found) = found else { return Ok(Exit::Interrupted) };
    let text = if args.json { document(&location, &found) } else { page(&location, &found) };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if found.report.is_sound() { Exit::Success } else { Exit::Failed })
}

async fn examine(sealed: &SealedStore, store: &dyn Store, purge: bool, anchors: &[String]) -> anyhow::Result<Found> {
    let now = SystemClock.now();
    let mut report = doctor::examine(store, now).await?;
    if report.is_sound() {
        doctor::check_sealed(sealed, &mut report).await?;
    }
    if !anchors.is_empty() {
        doctor::check_anchors(store, anchors, &mut report).await?;
    }
    let purgeable = match store.purgeable(now).await {
        Err(_) if !report.is_sound() => 0,
        purgeable => purgeable?,
    };
    // A damaged store may need repair, so nothing is removed from it.
    let purged = if purge && report.is_sound() { Some(doctor::purge(store, now).await?) } else { None };
    let stats = match store.stats(true).await {
        // A damaged file cannot be counted, and the report already says that it is damaged.
        Err(_) if !report.is_sound() => Stats::default(),
        stats => stats?,
    };
    Ok(Found { report, stats, purgeable, purged })
}

/// The label of the location.
fn location_label(location: &Location) -> &'static str {
    match location {
        Location::Directory(_) => "directory",
        Location::Postgres(_) => "database",
    }
}

fn document(location: &Location, found: &Found) -> String {
    let Found { report, stats, purgeable, purged } = found;
    let rows: serde_json::Map<_, _> = stats.rows.iter().map(|(table, rows)| (table.clone(), json!(rows))).collect();
    let document = json!({
        location_label(location): location.to_string(),
        "sound": report.is_sound(),
        "report": report,
        "size": {"bytes": stats.bytes, "free": stats.free, "journal": stats.journal, "rows": rows},
        "purgeable_runs": purgeable,
        "purged_rows": purged,
    });
    format!("{document}\n")
}

fn page(location: &Location, found: &Found) -> String {
    let Found { report, stats, purgeable, purged } = found;
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10}{}", plain(&what));
    };
    line(location_label(location), location.to_string());
    let (file, free, journal) = (bytes(stats.bytes), bytes(stats.free), bytes(stats.journal));
    line("size", format!("{file}, {free} of it free; write-ahead log {journal}"));
    let rows: Vec<String> = stats.rows.iter().map(|(table, rows)| format!("{table} {rows}")).collect();
    line("rows", rows.join(", "));
    line("runs", format!("{}, {} unfinished", report.runs, report.unfinished));
    for waits in &report.waiting {
        line("waiting", format!("{} for {}", waits.count, describe::word(&waits.what)));
        for oldest in &waits.oldest {
            line("", format!("  {}: {}", oldest.run, describe::waiting(&describe::waiting_view(&oldest.waiting))));
        }
    }
    line("evidence", evidence(&report.evidence));
    if report.timers_unchecked {
        line("", "too many timers to check whether each run has its own".into());
    }
    line(
        "purge",
        match purged {
            Some(rows) => format!("{purgeable} finished runs removed ({rows} rows)"),
            None => format!("{purgeable} finished runs would be removed now"),
        },
    );
    for fault in &report.faults {
        let run = fault.run.as_deref().map(|run| format!("{run}: ")).unwrap_or_default();
        line("fault", format!("{run}{} [{}]", fault.message, describe::word(&fault.check)));
    }
    if report.more_faults > 0 {
        line("fault", format!("and {} more", report.more_faults));
    }
    if report.is_sound() {
        line("sound", "nothing is wrong".into());
    }
    text
}

/// How far the rows are known to be those that were written.
fn evidence(report: &EvidenceReport) -> String {
    match (report.kept, &report.key, report.since) {
        _ if report.locked => "kept under a chain key that needs the master key, which is not here".into(),
        (false, _, _) => "not kept yet: a node of an older version is running".into(),
        (true, Some(key), Some(since)) => format!("keyed since {} (chain key {key})", describe::instant(since)),
        (true, _, _) => "without a key: there is no master key, so an expert with write access can forge it".into(),
    }
}

/// A size with at most three digits.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 999.5 && unit + 1 < UNITS.len() {
        amount /= 1_000.0;
        unit += 1;
    }
    let digits = if unit == 0 || amount >= 99.5 { 0 } else { 1 };
    format!("{amount:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_short() {
        let check = |amount, expected: &str| assert_eq!(bytes(amount), expected);
        check(0, "0 B");
        check(999, "999 B");
        check(4_096, "4.1 kB");
        check(999_600, "1.0 MB");
        check(123_456_789, "123 MB");
    }
}
