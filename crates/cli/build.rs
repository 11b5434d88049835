//! Tells the binary which commit it was built from, and of which day, for `stepwell --version`.
//!
//! The environment comes first (`STEPWELL_COMMIT`, `SOURCE_DATE_EPOCH`), so that a build without a repository has them too.
//! The date is the commit's, not the clock's: two builds of one commit are the same. Only release builds ask git;
//! otherwise every commit would link the binary anew while you work.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=STEPWELL_COMMIT");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = std::env::var("STEPWELL_COMMIT").ok().or_else(|| release.then(head).flatten());
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok().or_else(|| release.then(committed).flatten());
    let date = seconds.and_then(|seconds| seconds.trim().parse().ok()).map(day);
    let built = match (commit, date) {
        (Some(commit), Some(date)) => format!(" ({commit} {date})"),
        (Some(only), None) | (None, Some(only)) => format!(" ({only})"),
        (None, None) => String::new(),
    };
    println!("cargo::rustc-env=STEPWELL_BUILT={built}");
}

fn head() -> Option<String> {
    // The log of HEAD grows with every commit and checkout, also in a linked worktree.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn committed() -> Option<String> {
    git(&["log", "-1", "--format=%ct"])
}

/// What git prints, or nothing where there is no git or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !said.is_empty()).then_some(said)
}

/// The day of a moment in seconds since 1970, in UTC: the algorithm of Howard Hinnant's `civil_from_days`.
fn day(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{date:02}", year_of_era + era * 400 + next)
}
