//! Schedules against an oracle in Python (`scripts/cron_oracle.py`): every time they fire around every clock change of
//! ten years, in zones that change in different ways, under all the rules. Also the rules on dates that can be checked
//! by hand.
//!
//! The oracle needs Python 3.9 or newer with `venv`; its packages are installed below the target folder. Their versions
//! are pinned, and it covers only past years, on which releases of the time zone database agree.

use proptest::prelude::*;
use proptest::sample::select;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use stepwell_core::definition::{Cron, Repeated, Skipped};
use stepwell_core::time::Time;
use stepwell_formats::cron::Schedule;

const PACKAGES: [&str; 2] = ["croniter==6.2.4", "tzdata==2026.5"];
const NEEDS: &str = "this test needs python3 (3.9 or newer) with venv and pip (Debian: python3 python3-venv), and for \
                     its first run a package index that pip can reach";

fn schedule(expression: &str, zone: &str, skipped: Skipped, repeated: Repeated) -> Schedule {
    let (expression, timezone) = (expression.to_owned(), Some(zone.to_owned()));
    let cron = Cron { expression, timezone, skipped, repeated, ..Cron::default() };
    Schedule::new(&cron).unwrap_or_else(|| panic!("{cron:?}"))
}

/// All times the schedule fires in (after, until], found one by one.
fn forward(schedule: &Schedule, after: Time, until: Time) -> Vec<Time> {
    let fires = successors(schedule.next(after), |last| schedule.next(*last));
    fires.take_while(|fire| *fire <= until).collect()
}

fn time(text: &str) -> Time {
    Time::parse(text).unwrap_or_else(|| panic!("{text}"))
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}\n{NEEDS}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{NEEDS}", output.status);
    output
}

/// The Python of a virtual environment with the packages. Created once: its name encodes its contents.
fn python() -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("oracle-{}", PACKAGES.join("-").replace("==", "-")));
    let (python, done) = (folder.join("bin/python"), folder.join("done"));
    if !done.exists() || !python.exists() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES));
        std::fs::write(&done, "").expect("a writable target folder");
    }
    python
}

#[test]
fn schedules_agree_with_the_oracle_around_every_clock_change() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cron_oracle.py");
    // An empty path makes zoneinfo use the package, not the database of the machine.
    let output = run(Command::new(python()).arg(script).env("PYTHONTZPATH", ""));
    let (mut wrong, mut windows, mut compared) = (Vec::new(), 0, 0);
    for line in std::str::from_utf8(&output.stdout).expect("text").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[zone, expression, skipped, repeated, after, until, fires] = columns.as_slice() else {
            panic!("not a line of the oracle: {line}")
        };
        let seconds = |text: &str| Time(text.parse::<i64>().expect("seconds") * 1_000);
        let (after, until) = (seconds(after), seconds(until));
        let expected: Vec<Time> = fires.split_whitespace().map(seconds).collect();
        let rules = match skipped {
            "run" => Skipped::Run,
            "skip" => Skipped::Skip,
            other => panic!("{other}"),
        };
        let repeats = match repeated {
            "default" => Repeated::ByHour,
            "once" => Repeated::Once,
            "twice" => Repeated::Twice,
            other => panic!("{other}"),
        };
        let schedule = schedule(expression, zone, rules, repeats);
        let found = forward(&schedule, after, until);
        let back = schedule.between(after, until, usize::MAX);
        if found != expected || back != expected {
            let only = |a: &[Time], b: &[Time]| -> Vec<String> {
                a.iter().filter(|time| !b.contains(time)).map(Time::to_string).take(5).collect()
            };
            wrong.push(format!(
                "{expression} in {zone}, {skipped} {repeated}, after {after}: missing {:?}, too many {:?}; \
                 looking back: missing {:?}, too many {:?}",
                only(&expected, &found),
                only(&found, &expected),
                only(&expected, &back),
                only(&back, &expected)
            ));
        }
        windows += 1;
        compared += expected.len();
    }
    println!("{windows} intervals, {compared} times");
    assert!(wrong.is_empty(), "{} of {windows} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(windows > 10_000 && compared > 100_000, "the oracle printed too little: {windows} lines, {compared} times");
}

/// Checks the times of one day in Amsterdam, in UTC.
fn check(day: &str, expression: &str, rules: (Skipped, Repeated), expected: &[&str]) {
    let schedule = schedule(expression, "Europe/Amsterdam", rules.0, rules.1);
    let (after, until) = (time(&format!("{day}T00:10:00Z")), time(&format!("{day}T03:00:00Z")));
    let expected: Vec<Time> = expected.iter().map(|clock| time(&format!("{day}T{clock}:00Z"))).collect();
    assert_eq!(forward(&schedule, after, until), expected, "{expression} {rules:?}");
    assert_eq!(schedule.between(after, until, 100), expected, "{expression} {rules:?}, backwards");
}

/// 02:00 to 03:00 does not exist on this day: 01:00 UTC is 03:00.
#[test]
fn a_skipped_time_fires_once_after_the_gap_or_not_at_all() {
    let day = "2026-03-29";
    let (run, skip) = ((Skipped::Run, Repeated::ByHour), (Skipped::Skip, Repeated::ByHour));
    check(day, "30 2 * * *", run, &["01:00"]);
    check(day, "30 2 * * *", skip, &[]);
    check(day, "*/10 2 * * *", run, &["01:00"]);
    check(day, "*/10 2 * * *", skip, &[]);
    // The schedule also fires at the end of the gap: still once.
    check(day, "0,30 2,3 * * *", run, &["01:00", "01:30"]);
    check(day, "0,30 2,3 * * *", skip, &["01:00", "01:30"]);
    check(day, "30 * * * *", run, &["00:30", "01:00", "01:30", "02:30"]);
    check(day, "30 * * * *", skip, &["00:30", "01:30", "02:30"]);
    check(day, "0 * * * *", run, &["01:00", "02:00", "03:00"]);
    check(day, "0 2 * * SUN", run, &["01:00"]);
    check(day, "0 2 * * MON", run, &[]);
}

/// 02:00 to 03:00 occurs twice on this day: first from 00:00 UTC, then from 01:00.
#[test]
fn a_repeated_time_fires_once_or_twice() {
    let day = "2026-10-25";
    let (by_hour, once, twice) =
        ((Skipped::Run, Repeated::ByHour), (Skipped::Run, Repeated::Once), (Skipped::Run, Repeated::Twice));
    check(day, "30 2 * * *", by_hour, &["00:30"]);
    check(day, "30 2 * * *", once, &["00:30"]);
    check(day, "30 2 * * *", twice, &["00:30", "01:30"]);
    check(day, "30 * * * *", by_hour, &["00:30", "01:30", "02:30"]);
    check(day, "30 * * * *", once, &["00:30", "02:30"]);
    check(day, "30 */2 * * *", by_hour, &["00:30", "01:30"]);
    check(day, "30 0-23 * * *", by_hour, &["00:30", "02:30"]);
    check(day, "0 3 * * *", twice, &["02:00"]);
    check(day, "15,45 2 * * *", twice, &["00:15", "00:45", "01:15", "01:45"]);
}

#[test]
fn the_interval_excludes_its_start_and_includes_its_end() {
    let schedule = Schedule::new(&Cron { expression: "*/5 * * * *".into(), ..Cron::default() }).expect("a schedule");
    let at = time("2026-01-01T00:05:00Z");
    assert_eq!(schedule.next(Time(at.0 - 1)), Some(at));
    assert_eq!(schedule.next(at), Some(time("2026-01-01T00:10:00Z")));
    assert_eq!(schedule.next(Time(at.0 + 1)), Some(time("2026-01-01T00:10:00Z")));
    assert_eq!(schedule.between(Time(at.0 - 1), at, 9), [at]);
    assert_eq!(schedule.between(at, Time(at.0 + 299_999), 9), []);
    assert_eq!(schedule.between(at, Time(at.0 - 1), 9), []);
    assert_eq!(Schedule::new(&Cron { expression: "61 * * * *".into(), ..Cron::default() }).map(|_| ()), None);
    let nowhere = Cron { expression: "* * * * *".into(), timezone: Some("Nowhere".into()), ..Cron::default() };
    assert_eq!(Schedule::new(&nowhere).map(|_| ()), None);
}

#[test]
fn between_returns_the_newest_times_up_to_the_limit() {
    let schedule = schedule("* * * * * *", "Europe/Amsterdam", Skipped::Run, Repeated::ByHour);
    // Two thousand years of seconds: only the requested times are computed.
    let (after, until) = (time("0026-01-01T00:00:00Z"), time("2026-01-01T00:00:00Z"));
    let found = schedule.between(after, until, 3);
    assert_eq!(found, [Time(until.0 - 2_000), Time(until.0 - 1_000), until]);
    assert_eq!(schedule.between(after, until, 0), []);
}

#[test]
fn any_start_time_and_rare_expressions_are_answered_quickly() {
    let years = ["0 0 29 2 *", "0 0 29 2 +MON", "30 2 * 2 FRI#5", "0 0 31 12 +SUN#5", "* * * * * *", "@yearly"];
    let ends = [i64::MIN, i64::MIN + 1, -62_135_596_800_000, 0, 95_617_584_000_000, i64::MAX - 1, i64::MAX];
    let now = time("2026-03-01T00:00:00Z").0;
    for zone in ["UTC", "Europe/Amsterdam", "Pacific/Apia", "Africa/Casablanca", "America/New_York"] {
        for expression in years {
            let schedule = schedule(expression, zone, Skipped::Run, Repeated::Twice);
            let mut slowest = Duration::ZERO;
            for start in ends.into_iter().chain([now]) {
                let started = Instant::now();
                let next = schedule.next(Time(start));
                slowest = slowest.max(started.elapsed());
                assert!(next.is_none_or(|next| next > Time(start)), "{expression} after {start}: {next:?}");
                for end in ends {
                    let started = Instant::now();
                    let found = schedule.between(Time(start), Time(end), 2);
                    slowest = slowest.max(started.elapsed());
                    assert!(found.iter().all(|fire| *fire > Time(start) && *fire <= Time(end)), "{expression}");
                }
            }
            assert!(schedule.next(Time(now)).is_some(), "{expression}");
            // Far more than needed, for a busy machine.
            assert!(slowest < Duration::from_secs(1), "{expression} in {zone} took {slowest:?}");
            println!("{expression} in {zone}: at most {slowest:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Forward and backward search are separate; they must find the same times.
    #[test]
    fn backward_search_agrees_with_forward_search(
        minute in select(vec!["*", "0", "30", "*/20", "5-9", "59"]),
        hour in select(vec!["*", "*/3", "0", "1-2", "2", "23"]),
        day in select(vec!["*", "1", "29", "L", "15W", "10-20"]),
        month in select(vec!["*", "2", "3,10", "*/4"]),
        weekday in select(vec!["*", "SUN", "1-5", "FRI#5", "+SAT"]),
        zone in select(vec!["UTC", "Europe/Amsterdam", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns"]),
        skips in any::<bool>(),
        repeated in select(vec![Repeated::ByHour, Repeated::Once, Repeated::Twice]),
        // From before time zones existed to far beyond the known rules.
        start in -5_000_000_000_000..=20_000_000_000_000_i64,
    ) {
        let expression = format!("{minute} {hour} {day} {month} {weekday}");
        let skipped = if skips { Skipped::Skip } else { Skipped::Run };
        let cron = Cron { expression, timezone: Some(zone.into()), skipped, repeated, ..Cron::default() };
        // Some of these never match.
        if let Some(schedule) = Schedule::new(&cron) {
            let start = Time(start);
            let fires: Vec<Time> = successors(schedule.next(start), |last| schedule.next(*last)).take(5).collect();
            prop_assert!(fires.len() == 5 && fires[0] > start && fires.is_sorted_by(|a, b| a < b), "{fires:?}");
            prop_assert_eq!(&schedule.between(start, fires[4], usize::MAX), &fires);
            prop_assert_eq!(&schedule.between(start, Time(fires[4].0 - 1), 2)[..], &fires[2..4]);
        }
    }
}

/// 1 January 2026 was a Thursday.
#[test]
fn days_can_be_named_in_every_documented_way() {
    for (expression, expected) in [
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("0 0 * * FRIL", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16"]),
        ("0 0 1W * *", ["2026-02-02", "2026-03-02", "2026-04-01"]),
        ("0 0 * * MON#2", ["2026-01-12", "2026-02-09", "2026-03-09"]),
        ("0 0 * * 0", ["2026-01-04", "2026-01-11", "2026-01-18"]),
        ("0 0 * * 7", ["2026-01-04", "2026-01-11", "2026-01-18"]),
        ("0 0 13 * FRI", ["2026-01-02", "2026-01-09", "2026-01-13"]),
        ("0 0 13 * +FRI", ["2026-02-13", "2026-03-13", "2026-11-13"]),
        ("0 0 1-31/10 JAN *", ["2026-01-11", "2026-01-21", "2026-01-31"]),
        ("@weekly", ["2026-01-04", "2026-01-11", "2026-01-18"]),
        ("@annually", ["2027-01-01", "2028-01-01", "2029-01-01"]),
    ] {
        let schedule = schedule(expression, "UTC", Skipped::Run, Repeated::ByHour);
        let expected = expected.map(|day| time(&format!("{day}T00:00:00Z")));
        let found = successors(schedule.next(time("2026-01-01T00:00:00Z")), |last| schedule.next(*last));
        assert_eq!(found.take(3).collect::<Vec<_>>(), expected, "{expression}");
    }
}

/// The rows of a table whose head begins with `on DAY`, as cells.
fn rows<'d>(document: &'d str, day: &str) -> Vec<Vec<&'d str>> {
    let head = format!("| on {day} |");
    let lines = document.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn the_tables_in_the_documentation_are_correct() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/triggers.md");
    let document = std::fs::read_to_string(path).expect("docs/triggers.md");
    for (day, after, until) in
        [("2026-03-29", "01:00:00+01:00", "04:00:00+02:00"), ("2026-10-25", "01:00:00+02:00", "04:00:00+01:00")]
    {
        let rows = rows(&document, day);
        assert!(rows.len() >= 8, "the table of {day} has {} rows", rows.len());
        for row in rows {
            let &[expression, rule, fires] = row.as_slice() else { panic!("{row:?}") };
            let (skipped, repeated) = match rule.trim_matches('`') {
                "" => (Skipped::Run, Repeated::ByHour),
                "when_skipped: skip" => (Skipped::Skip, Repeated::ByHour),
                "when_repeated: once" => (Skipped::Run, Repeated::Once),
                "when_repeated: twice" => (Skipped::Run, Repeated::Twice),
                other => panic!("{other}"),
            };
            let schedule = schedule(expression.trim_matches('`'), "Europe/Amsterdam", skipped, repeated);
            let shown = fires.split_whitespace().filter(|cell| *cell != "nothing");
            let expected: Vec<Time> = shown
                .map(|cell| {
                    let (clock, zone) = cell.trim_matches('`').split_at("00:00".len());
                    time(&format!("{day}T{clock}:00{zone}"))
                })
                .collect();
            let after = Time(time(&format!("{day}T{after}")).0 - 1);
            assert_eq!(forward(&schedule, after, time(&format!("{day}T{until}"))), expected, "{row:?}");
        }
    }
}
