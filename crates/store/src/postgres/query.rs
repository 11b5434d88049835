//! Queries: each is one statement, so all of its parts are from one snapshot. Only the payloads of large runs take more.

use super::args::{Arg, arg, args};
use super::rows;
use super::session::{DbResult, Failed, Session};
use crate::*;
use std::collections::BTreeMap;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use tokio_postgres::Row;

/// Statuses of unfinished runs.
const OPEN: [&str; 4] = ["scheduled", "queued", "running", "paused"];

/// Bytes of payloads that one statement returns, so that it takes no longer than a statement may. Payloads beyond that
/// are read in further statements.
const PAGE_BYTES: i64 = 16 << 20;
/// How often a run with many payloads is read again because it changed meanwhile.
const MAX_RELOADS: u32 = 5;
/// Columns of a loaded run without its payloads.
const COLUMNS: usize = 32;

/// Reads a run as of one moment: payloads that do not fit into one statement are read in pages, and the run is read
/// again if it was changed meanwhile.
pub async fn load(db: &Session, run: RunId) -> DbResult<Option<LoadedRun>> {
    for _ in 0..=MAX_RELOADS {
        let Some((mut loaded, last)) = first_page(db, run).await? else { return Ok(None) };
        if load_values(db, &mut loaded, last).await? {
            return Ok(Some(loaded));
        }
    }
    Err(Failed::Lost(format!("the run {} changes while it is read", run.0)))
}

async fn first_page(db: &Session, run: RunId) -> DbResult<Option<(LoadedRun, Option<i64>)>> {
    Ok(first_pages(db, vec![run.0], Page::FromFirst(PAGE_BYTES)).await?.pop())
}

/// Reads the runs whose payloads fit, one run after the other.
pub async fn load_small(db: &Session, runs: Vec<i64>, bytes: u64) -> DbResult<Vec<LoadedRun>> {
    let page = Page::Within(i64::try_from(bytes).unwrap_or(i64::MAX));
    let is_whole = |(run, last): &(LoadedRun, Option<i64>)| newest(run) == *last;
    let pages = first_pages(db, runs, page).await?;
    Ok(pages.into_iter().filter(is_whole).map(|(run, _)| run).collect())
}

/// A run without its payloads.
pub async fn outline(db: &Session, run: RunId) -> DbResult<Option<LoadedRun>> {
    Ok(first_pages(db, vec![run.0], Page::Within(-1)).await?.pop().map(|(run, _)| run))
}

/// The sizes of payloads, without reading them.
pub async fn sizes(db: &Session, run: RunId) -> DbResult<Vec<(ValueId, u64)>> {
    let sql = "SELECT id, octet_length(payload)::bigint FROM step_values WHERE run = $1 ORDER BY id";
    let rows = db.query(sql, args![run.0]).await?;
    Ok(rows.iter().map(|row| (rows::value_id(row.get(0)), row.get::<_, i64>(1).unsigned_abs())).collect())
}

/// The payloads that are read with runs.
#[derive(Clone, Copy)]
enum Page {
    /// The first, and those that begin within so many bytes.
    FromFirst(i64),
    /// Those that end within so many bytes.
    Within(i64),
}

/// The id of the last payload that was read.
fn newest(run: &LoadedRun) -> Option<i64> {
    run.values.last().map(|value| i64::from(value.id.0))
}

/// Runs with their first payloads, and the id of the last payload of each.
async fn first_pages(db: &Session, runs: Vec<i64>, page: Page) -> DbResult<Vec<(LoadedRun, Option<i64>)>> {
    let (bound, bytes) = match page {
        Page::FromFirst(bytes) => ("v.upto - v.size < $2", bytes),
        Page::Within(bytes) => ("v.upto <= $2", bytes),
    };
    let none = vec!["NULL"; COLUMNS].join(", ");
    let sql = format!(
        "SELECT {}, r.version, r.hash, r.secret, r.place, r.state,
           s.steps, s.attempts, s.statuses, s.sinces, s.ends, s.inputs, s.outputs, s.states,
           (SELECT max(id) FROM step_values WHERE run = r.id), NULL::bigint, NULL::bigint, NULL
         FROM workflow_runs r
         LEFT JOIN LATERAL (
           SELECT array_agg(step) AS steps, array_agg(attempt) AS attempts, array_agg(status) AS statuses,
             array_agg(since) AS sinces, array_agg(ended_at) AS ends, array_agg(input) AS inputs,
             array_agg(output) AS outputs, array_agg(state) AS states
           FROM (SELECT DISTINCT ON (step) {} FROM workflow_step_runs WHERE run = r.id ORDER BY step, attempt DESC) AS n
         ) s ON true
         WHERE r.id = ANY($1)
         UNION ALL
         SELECT {none}, v.run, v.id, v.payload FROM (
           SELECT run, id, payload, octet_length(payload) AS size, sum(octet_length(payload)) OVER (ORDER BY run, id) AS upto
           FROM step_values WHERE run = ANY($1)
         ) v WHERE {bound}",
        rows::RUN,
        rows::STEP
    );
    let (values, heads): (Vec<Row>, Vec<Row>) = db
        .query(&sql, args![runs, bytes])
        .await?
        .into_iter()
        .partition(|row| row.get::<_, Option<i64>>(COLUMNS).is_some());
    let mut by_run: BTreeMap<i64, Vec<ValueRow>> = BTreeMap::new();
    for row in values {
        let value = ValueRow { id: rows::value_id(row.get(COLUMNS + 1)), payload: row.get(COLUMNS + 2) };
        by_run.entry(row.get(COLUMNS)).or_default().push(value);
    }
    let run = |row: &Row| {
        let mut run = without_values(row);
        run.values = by_run.remove(&run.row.id.0).unwrap_or_default();
        run.values.sort_by_key(|value| value.id);
        (run, row.get(COLUMNS - 1))
    };
    Ok(heads.iter().map(run).collect())
}

/// Reads the payloads of a run that are missing, up to `last`. False if the run was changed meanwhile.
async fn load_values(db: &Session, run: &mut LoadedRun, last: Option<i64>) -> DbResult<bool> {
    let id = run.row.id.0;
    if newest(run) == last {
        return Ok(true);
    }
    let sql = "SELECT v.id, v.payload FROM (
                 SELECT id, payload, sum(octet_length(payload)) OVER (ORDER BY id) - octet_length(payload) AS before
                 FROM step_values WHERE run = $1 AND id > $2 AND id <= $3
               ) v WHERE v.before < $4 ORDER BY v.id";
    while newest(run) < last {
        let page = db.query(sql, args![id, newest(run).unwrap_or(-1), last.unwrap_or(-1), PAGE_BYTES]).await?;
        if page.is_empty() {
            return Ok(false);
        }
        run.values.extend(page.iter().map(|row| ValueRow { id: rows::value_id(row.get(0)), payload: row.get(1) }));
    }
    let now = db.one("SELECT version FROM workflow_runs WHERE id = $1", args![id]).await?;
    Ok(now.is_some_and(|row| Version(row.get(0)) == run.version))
}

/// A run without its steps and payloads.
pub async fn head(db: &Session, run: RunId) -> DbResult<Option<LoadedRun>> {
    let sql = format!(
        "SELECT {}, r.version, r.hash, r.secret, r.place, r.state FROM workflow_runs r WHERE r.id = $1",
        rows::RUN
    );
    Ok(db.one(&sql, args![run.0]).await?.map(|row| without_steps(&row)))
}

fn without_steps(row: &Row) -> LoadedRun {
    LoadedRun {
        row: rows::run(row),
        version: Version(row.get(18)),
        hash: rows::bytes(row, 19),
        secret: rows::bytes(row, 20),
        group: row.get(21),
        state: row.get(22),
        steps: Vec::new(),
        values: Vec::new(),
    }
}

/// A run without its payloads.
fn without_values(row: &Row) -> LoadedRun {
    let paths: Vec<String> = list(row, 23);
    let (attempts, statuses): (Vec<i64>, Vec<String>) = (list(row, 24), list(row, 25));
    let (sinces, ends): (Vec<i64>, Vec<Option<i64>>) = (list(row, 26), list(row, 27));
    let (inputs, outputs): (Vec<Option<i64>>, Vec<Option<i64>>) = (list(row, 28), list(row, 29));
    let states: Vec<String> = list(row, 30);
    let fixed = paths.into_iter().zip(attempts).zip(statuses).zip(sinces);
    let rest = ends.into_iter().zip(inputs).zip(outputs).zip(states);
    let steps =
        fixed.zip(rest).map(|((((path, attempt), status), since), (((ended, input), output), state))| StepRow {
            path,
            attempt: rows::small(attempt),
            status,
            since: Time(since),
            ended: ended.map(Time),
            input: input.map(rows::value_id),
            output: output.map(rows::value_id),
            state,
        });
    LoadedRun { steps: steps.collect(), ..without_steps(row) }
}

/// Reads an array column; an aggregate over no rows is NULL.
fn list<'a, T>(row: &'a Row, column: usize) -> Vec<T>
where
    Vec<T>: tokio_postgres::types::FromSql<'a>,
{
    row.get::<_, Option<Vec<T>>>(column).unwrap_or_default()
}

pub async fn run(db: &Session, run: RunId) -> DbResult<Option<RunRow>> {
    let sql = format!("SELECT {} FROM workflow_runs r WHERE r.id = $1", rows::RUN);
    Ok(db.one(&sql, args![run.0]).await?.map(|row| rows::run(&row)))
}

pub async fn tail(db: &Session, run: RunId, after: Version, limit: u32) -> DbResult<Vec<StoredLog>> {
    let sql = format!(
        "SELECT {} FROM workflow_events e WHERE run = $1 AND version > $2 ORDER BY version LIMIT $3",
        rows::LOG
    );
    Ok(db.query(&sql, args![run.0, after.0, i64::from(limit)]).await?.iter().map(rows::log).collect())
}

/// Merges each writer's next rows by position. `limit` rows per writer are enough: the first `limit` rows of the merge
/// cannot contain more.
pub async fn feed(db: &Session, after: &Progress, limit: u32) -> DbResult<Vec<Fed>> {
    let (writers, numbers): (Vec<i32>, Vec<i64>) =
        after.positions().map(|position| (position.writer, position.number)).unzip();
    let sql = format!(
        "SELECT {log}, e.run, r.org, r.public_id
         FROM writers w LEFT JOIN unnest($1::int[], $2::bigint[]) AS p(writer, number) ON p.writer = w.id
         CROSS JOIN LATERAL (SELECT * FROM workflow_events e WHERE e.writer = w.id AND e.position > coalesce(p.number, 0)
           ORDER BY e.position LIMIT $3) e
         JOIN workflow_runs r ON r.id = e.run ORDER BY e.position, e.writer LIMIT $3",
        log = rows::LOG
    );
    Ok(db.query(&sql, args![writers, numbers, i64::from(limit)]).await?.iter().map(fed).collect())
}

/// The same for one organisation, by its index. Rows written by nodes of an older version do not name theirs.
pub async fn feed_of(db: &Session, org: OrgId, after: &Progress, limit: u32) -> DbResult<Vec<Fed>> {
    let (writers, numbers): (Vec<i32>, Vec<i64>) =
        after.positions().map(|position| (position.writer, position.number)).unzip();
    let sql = format!(
        "SELECT {log}, e.run, r.org, r.public_id
         FROM writers w LEFT JOIN unnest($1::int[], $2::bigint[]) AS p(writer, number) ON p.writer = w.id
         CROSS JOIN LATERAL (
           (SELECT * FROM workflow_events e WHERE e.org = $4 AND e.writer = w.id AND e.position > coalesce(p.number, 0)
            ORDER BY e.position LIMIT $3)
           UNION ALL
           (SELECT e.* FROM workflow_events e JOIN workflow_runs o ON o.id = e.run AND o.org = $4
            WHERE e.org IS NULL AND e.writer = w.id AND e.position > coalesce(p.number, 0)
            ORDER BY e.position LIMIT $3)) e
         JOIN workflow_runs r ON r.id = e.run ORDER BY e.position, e.writer LIMIT $3",
        log = rows::LOG
    );
    Ok(db.query(&sql, args![writers, numbers, i64::from(limit), org.0]).await?.iter().map(fed).collect())
}

fn fed(row: &Row) -> Fed {
    Fed { run: RunId(row.get(7)), org: OrgId(row.get(8)), public: row.get(9), log: rows::log(row) }
}

pub async fn values(db: &Session, run: RunId, ids: &[ValueId]) -> DbResult<Vec<ValueRow>> {
    let wanted: Vec<i64> = ids.iter().map(|id| i64::from(id.0)).collect();
    let sql = "SELECT id, payload FROM step_values WHERE run = $1 AND id = ANY($2)";
    let found = db.query(sql, args![run.0, wanted]).await?;
    let mut found: BTreeMap<ValueId, String> =
        found.iter().map(|row| (rows::value_id(row.get(0)), row.get(1))).collect();
    Ok(ids.iter().filter_map(|id| found.remove(id).map(|payload| ValueRow { id: *id, payload })).collect())
}

pub async fn attempts(db: &Session, run: RunId) -> DbResult<Vec<StepRow>> {
    let sql = format!("SELECT {} FROM workflow_step_runs WHERE run = $1 ORDER BY step, attempt", rows::STEP);
    Ok(db.query(&sql, args![run.0]).await?.iter().map(rows::step).collect())
}

pub async fn due(db: &Session, until: Time, share: Share, limit: u32) -> DbResult<Vec<DueTimer>> {
    // From the shards of other nodes, only overdue timers.
    let sql = "SELECT t.due, t.run, t.key FROM generate_series(0, $1::int - 1) AS s(shard)
               CROSS JOIN LATERAL (SELECT due, run, key FROM timers WHERE shard = s.shard
                 AND due <= CASE WHEN s.shard % $2::int = $3::int THEN $4::bigint ELSE least($4::bigint, $5::bigint) END
                 ORDER BY due LIMIT $6) t
               ORDER BY t.due, t.run, t.key LIMIT $6";
    let (shards, of, index) = (Share::SHARDS as i32, share.of as i32, share.index as i32);
    let (overdue, limit) = (share.overdue.0, i64::from(limit));
    let args = args![shards, of, index, until.0, overdue, limit];
    let timer = |row: &Row| DueTimer { due: Time(row.get(0)), run: RunId(row.get(1)), key: row.get(2) };
    Ok(db.query(sql, args).await?.iter().map(timer).collect())
}

pub async fn gates(db: &Session, org: OrgId, after: (i64, String), limit: u32) -> DbResult<Vec<OpenGate>> {
    let sql = "SELECT g.run, r.public_id, g.step, g.since FROM gates g JOIN workflow_runs r ON r.id = g.run
               WHERE g.org = $1 AND (g.run, g.step) > ($2, $3) ORDER BY g.run, g.step LIMIT $4";
    let gate =
        |row: &Row| OpenGate { run: RunId(row.get(0)), public: row.get(1), path: row.get(2), since: Time(row.get(3)) };
    Ok(db.query(sql, args![org.0, after.0, after.1, i64::from(limit)]).await?.iter().map(gate).collect())
}

pub async fn definition(db: &Session, which: &str, args: &[Arg<'_>]) -> DbResult<Option<DefinitionRow>> {
    let sql = format!("SELECT {} FROM workflow_definitions WHERE {which}", rows::DEFINITION);
    Ok(db.one(&sql, args).await?.map(|row| rows::definition(&row)))
}

pub const NEWEST: &str = "org = $1 AND name = $2 AND deleted_at IS NULL ORDER BY version DESC LIMIT 1";
const NEWEST_BY_ID: &str = "org = $1 AND workflow = $2 AND deleted_at IS NULL ORDER BY version DESC LIMIT 1";

pub async fn find_definition(db: &Session, org: OrgId, name: &str) -> DbResult<Option<DefinitionRow>> {
    match definition(db, NEWEST, args![org.0, name]).await? {
        None if name.starts_with("wf_") => definition(db, NEWEST_BY_ID, args![org.0, name]).await,
        found => Ok(found),
    }
}

pub async fn definitions(db: &Session, org: OrgId) -> DbResult<Vec<DefinitionRow>> {
    let sql = format!(
        "SELECT {} FROM workflow_definitions d WHERE org = $1 AND deleted_at IS NULL
         AND version = (SELECT max(version) FROM workflow_definitions WHERE workflow = d.workflow) ORDER BY name",
        rows::DEFINITION
    );
    Ok(db.query(&sql, args![org.0]).await?.iter().map(rows::definition).collect())
}

pub async fn versions(db: &Session, org: OrgId, workflow: &str) -> DbResult<Vec<DefinitionRow>> {
    let sql = format!(
        "SELECT {} FROM workflow_definitions WHERE org = $1 AND workflow = $2 AND NOT test ORDER BY version DESC",
        rows::DEFINITION
    );
    Ok(db.query(&sql, args![org.0, workflow]).await?.iter().map(rows::definition).collect())
}

pub async fn runs(db: &Session, filter: &RunFilter) -> DbResult<Vec<RunRow>> {
    let mut sql = format!("SELECT {} FROM workflow_runs r WHERE org = $1 AND test = $2 AND id < $3", rows::RUN);
    let before = filter.before.map_or(i64::MAX, |run| run.0);
    let mut args: Vec<Arg<'_>> = vec![arg(&filter.org.0), arg(&filter.tests), arg(&before)];
    if !filter.status.is_empty() {
        args.push(arg(&filter.status));
        sql.push_str(&format!(" AND status = ANY(${})", args.len()));
        if filter.status.iter().all(|status| OPEN.contains(&status.as_str())) {
            // Unfinished runs have their own index, which stays small.
            sql.push_str(" AND finished_at IS NULL");
        }
    }
    for label in &filter.labels {
        args.push(arg(label));
        sql.push_str(&format!(" AND id IN (SELECT run FROM run_labels WHERE label = ${})", args.len()));
    }
    let parent = filter.parent.map(|run| run.0);
    let (since, until) = (filter.since.map(|time| time.0), filter.until.map(|time| time.0));
    let limit = i64::from(filter.limit);
    if let Some(parent) = &parent {
        args.push(arg(parent));
        sql.push_str(&format!(" AND parent_run = ${}", args.len()));
    }
    if let Some(by) = &filter.by {
        args.push(arg(by));
        sql.push_str(&format!(" AND created_by = ${}", args.len()));
    }
    if let Some(text) = &filter.text {
        args.push(arg(text));
        let n = args.len();
        sql.push_str(&format!(
            " AND (strpos(public_id, ${n}) > 0 OR strpos(created_by, ${n}) > 0 OR strpos(coalesce(labels, ''), ${n}) > 0)"
        ));
    }
    if let Some(workflow) = &filter.workflow {
        args.push(arg(workflow));
        let of = "SELECT id FROM workflow_definitions WHERE workflow";
        sql.push_str(&format!(" AND definition IN ({of} = ${})", args.len()));
    }
    if let Some(since) = &since {
        args.push(arg(since));
        sql.push_str(&format!(" AND created_at >= ${}", args.len()));
    }
    if let Some(until) = &until {
        args.push(arg(until));
        sql.push_str(&format!(" AND created_at < ${}", args.len()));
    }
    args.push(arg(&limit));
    sql.push_str(&format!(" ORDER BY id DESC LIMIT ${}", args.len()));
    Ok(db.query_unprepared(&sql, &args).await?.iter().map(rows::run).collect())
}
