//! Commits of different runs in one statement: one round trip and one transaction, in which each commit is applied or
//! refused on its own.
//!
//! A run is updated only if it is still at the expected version, and all other rows are written only for runs that were
//! updated. Runs locked by another transaction are skipped as conflicts: the caller reads them again anyway, and
//! waiting for locks in different orders could deadlock. The statement contains only the parts that these commits need,
//! so there are a few different statements, each prepared once.

use super::args::{Arg, Typed, arg};
use super::evidence::Signed;
use super::session::{DbResult, Session};
use crate::{Commit, Diff, Keyed, Share, label_text};
use std::collections::BTreeMap;
use std::fmt::Write;
use stepwell_core::time::Time;
use tokio_postgres::types::{ToSql, Type};

/// A writer's row in `writers`, and the holder under which it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub id: i32,
    pub holder: i64,
}

/// The outcome of one commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Applied {
        number: i64,
    },
    /// The run was not at the expected version, or a unique key was taken.
    Conflict,
    AuthChanged,
}

/// Commits of different runs to write in one statement.
pub struct Batch<'a> {
    pub slot: Slot,
    pub commits: &'a [&'a Commit],
    /// Unique keys are handled here only if this is set; a commit may then have at most one, and must create its run.
    pub keys: bool,
    /// The writer's tally if all commits are applied. If one is not, the statement fails with a division by zero.
    pub tally: Option<Signed>,
}

/// Writes commits of different runs and returns their outcomes in order, or `None` if another writer holds the slot;
/// then nothing was written.
pub async fn write(session: &Session, batch: Batch<'_>) -> DbResult<Option<Vec<Outcome>>> {
    let commits = batch.commits;
    let statement = Statement::of(&batch);
    let args: Vec<Arg<'_>> = statement.args.iter().map(|(value, ty)| (&**value as _, ty.clone())).collect();
    let rows = session.query(&statement.sql, &args).await?;
    let mut outcomes = BTreeMap::new();
    for row in rows {
        let (run, ours, current, done): (i64, bool, bool, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
        if !ours {
            return Ok(None);
        }
        let outcome = match (current, done) {
            (true, true) => Outcome::Applied { number: row.get(4) },
            (true, false) => Outcome::Conflict,
            (false, _) => Outcome::AuthChanged,
        };
        outcomes.insert(run, outcome);
    }
    Ok(Some(commits.iter().map(|commit| outcomes.remove(&commit.run.0).unwrap_or(Outcome::Conflict)).collect()))
}

/// An SQL statement under construction, with its arguments.
struct Statement<'a> {
    sql: String,
    args: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)>,
}

/// The target of an insert.
struct Insert<'a> {
    table: &'a str,
    /// Its columns, separated by commas, including `run`.
    names: &'a str,
    /// An `ON CONFLICT` clause, or nothing.
    conflict: &'a str,
}

/// The target of a delete.
struct Delete<'a> {
    table: &'a str,
    /// The columns of the given rows, separated by commas, including `run`.
    names: &'a str,
    /// How a row `t` of the table matches a given row `x`.
    matching: &'a str,
}

/// Adds rows to a statement as one array argument per column; evaluates to the list of placeholders.
macro_rules! columns {
    ($statement:expr, $rows:expr, $row:pat => $($value:expr),* $(,)?) => {{
        let rows: Vec<_> = $rows.collect();
        let names: Vec<String> = vec![$({
            #[allow(unused_variables, reason = "a column needs only some of a row")]
            let column: Vec<_> = rows.iter().map(|$row| $value).collect();
            $statement.arg(column)
        }),*];
        names.join(", ")
    }};
}

impl<'a> Statement<'a> {
    fn of(batch: &'a Batch<'a>) -> Statement<'a> {
        let Batch { slot, commits, keys, tally } = batch;
        let (slot, keys) = (*slot, *keys);
        let mut statement = Statement { sql: String::with_capacity(4_096), args: Vec::new() };
        statement.heads(slot, commits, keys);
        statement.history(slot, commits);
        statement.pending(commits);
        statement.messages(commits);
        statement.counted(slot, commits);
        let all_done = tally.as_ref().map_or("1".to_string(), |tally| statement.tally(slot, tally, commits.len()));
        statement.part(format_args!(
            "\nSELECT a.run, EXISTS (SELECT 1 FROM w), ok.run IS NOT NULL, done.id IS NOT NULL, ok.position, {all_done}
             FROM asked a LEFT JOIN ok ON ok.run = a.run LEFT JOIN done ON done.id = a.run"
        ));
        statement
    }

    /// Writes the tally, and returns an expression that fails unless it was written and every commit was applied. The
    /// tally was signed before the outcome is known, because it takes part in the same statement.
    fn tally(&mut self, slot: Slot, tally: &'a Signed, commits: usize) -> String {
        let (id, number, count) = (self.arg(slot.id), self.arg(tally.number), self.arg(commits as i64));
        let body = self.arg(&tally.body[..]);
        self.part(format_args!(
            ",\nput_tally AS (INSERT INTO tallies AS t (writer, number, body) SELECT {id}, {number}, {body} FROM w
               ON CONFLICT (writer) DO UPDATE SET number = excluded.number, body = excluded.body
               WHERE t.number = {number} - 1 RETURNING 1)"
        ));
        format!(
            "1 / CASE WHEN NOT EXISTS (SELECT 1 FROM w)
               OR ((SELECT count(*) FROM done) = {count} AND EXISTS (SELECT 1 FROM put_tally)) THEN 1 ELSE 0 END"
        )
    }

    /// Adds an argument and returns its placeholder.
    fn arg<T: Typed + Send + 'a>(&mut self, value: T) -> String {
        let (_, ty) = arg(&value);
        self.args.push((Box::new(value), ty));
        format!("${}", self.args.len())
    }

    fn part(&mut self, text: std::fmt::Arguments<'_>) {
        self.sql.write_fmt(text).expect("text can always grow");
    }

    /// The requested commits, the writer's row, and the rows of the runs themselves.
    fn heads(&mut self, slot: Slot, commits: &[&'a Commit], keys: bool) {
        let numbered = commits.iter().zip(1i64..);
        let asked = columns!(self, numbered, (commit, n) =>
            commit.run.0, commit.expect.0, commit.auth.org.0, commit.auth.epoch, *n, commit.log.at.0,
            &commit.log.hash[..], commit.state.as_str(), commit.log.facts.as_str(), commit.log.payloads.as_str());
        self.part(format_args!(
            "WITH asked AS (SELECT * FROM unnest({asked})
               AS a(run, expect, org, epoch, n, at, hash, state, facts, payloads))"
        ));
        let (id, holder, count) = (self.arg(slot.id), self.arg(slot.holder), self.arg(commits.len() as i64));
        // A position is greater than that of the run's previous commit, whichever writer made it.
        self.part(format_args!(
            ",\nw AS (UPDATE writers SET seen_at = now(), position = {count} + greatest(position,
               (SELECT max(r.position) FROM workflow_runs r JOIN asked a ON a.run = r.id))
               WHERE id = {id} AND holder = {holder} RETURNING position - {count} AS base),
             ok AS (SELECT a.*, w.base + a.n AS position FROM w, asked a
               JOIN organisations o ON o.id = a.org AND o.epoch = a.epoch)"
        ));
        let (creates, updates): (Vec<&Commit>, Vec<&Commit>) =
            commits.iter().partition(|commit| commit.create.is_some());
        match (creates.is_empty(), updates.is_empty()) {
            (_, true) => {
                self.created(&creates, keys);
                self.part(format_args!(",\ndone AS (SELECT id FROM created)"));
            }
            (true, false) => {
                self.updated(&updates);
                self.part(format_args!(",\ndone AS (SELECT id FROM updated)"));
            }
            (false, false) => {
                self.created(&creates, keys);
                self.updated(&updates);
                self.part(format_args!(",\ndone AS (SELECT id FROM created UNION ALL SELECT id FROM updated)"));
            }
        }
    }

    fn updated(&mut self, updates: &[&'a Commit]) {
        let runs: Vec<i64> = updates.iter().map(|commit| commit.run.0).collect();
        let runs = self.arg(runs);
        self.part(format_args!(
            ",\nlocked AS MATERIALIZED (SELECT r.id FROM workflow_runs r WHERE r.id = ANY({runs}) ORDER BY r.id
               FOR NO KEY UPDATE SKIP LOCKED)"
        ));
        let plain = "version = ok.expect + 1, position = ok.position, hash = ok.hash, state = ok.state";
        let current = "r.id = locked.id AND r.id = ok.run AND r.version = ok.expect AND r.erased_at IS NULL";
        if updates.iter().all(|commit| commit.head.is_none()) {
            return self.part(format_args!(
                ",\nupdated AS (UPDATE workflow_runs r SET {plain} FROM ok, locked WHERE {current} RETURNING r.id)"
            ));
        }
        let heads = updates.iter().map(|commit| (commit.run.0, commit.head.as_ref()));
        let heads = columns!(self, heads, (run, head) =>
            *run, head.is_some(), head.map(|head| head.status.as_str()), head.map(|head| head.definition),
            head.and_then(|head| time(head.started)), head.and_then(|head| time(head.finished)),
            head.and_then(|head| time(head.purge)));
        self.part(format_args!(
            ",\nupdated AS (UPDATE workflow_runs r SET {plain},
               status = coalesce(h.status, r.status), definition = coalesce(h.definition, r.definition),
               started_at = coalesce(r.started_at, h.started),
               finished_at = CASE WHEN h.given THEN h.finished ELSE r.finished_at END,
               purge_at = CASE WHEN h.given THEN h.purge ELSE r.purge_at END
             FROM ok, locked, unnest({heads}) AS h(run, given, status, definition, started, finished, purge)
             WHERE {current} AND h.run = r.id RETURNING r.id)"
        ));
    }

    /// Inserts new runs. If a run already exists the statement fails, and each commit is retried on its own.
    fn created(&mut self, creates: &[&'a Commit], keys: bool) {
        let keyed: Vec<&Commit> = creates.iter().filter(|commit| keys && !commit.unique.is_empty()).copied().collect();
        let allowed = if keyed.is_empty() {
            "true"
        } else {
            let rows = keyed.iter().flat_map(|commit| commit.unique.iter().map(|key| (commit.run.0, key)));
            let names = columns!(self, rows, (run, key) =>
                *run, key.scope.as_str(), key.key.as_str(), key.digest.as_str(), time(key.expires));
            let now = self.arg(keyed.iter().map(|commit| commit.log.at.0).max().unwrap_or_default());
            self.part(format_args!(
                ",\nkeys AS (SELECT * FROM unnest({names}) AS k(run, scope, key, digest, expires)),
                 keyed AS (INSERT INTO unique_keys AS u (scope, key, run, digest, expires_at)
                   SELECT k.scope, k.key, k.run, k.digest, k.expires FROM keys k JOIN ok ON ok.run = k.run
                   ORDER BY k.scope, k.key
                   ON CONFLICT (scope, key) DO UPDATE SET run = excluded.run, digest = excluded.digest,
                     expires_at = excluded.expires_at WHERE u.expires_at <= {now} RETURNING run)"
            ));
            "(n.run NOT IN (SELECT run FROM keys) OR n.run IN (SELECT run FROM keyed))"
        };
        let new = creates.iter().filter_map(|commit| Some((commit, commit.create.as_ref()?, commit.head.as_ref()?)));
        let names = columns!(self, new, (commit, new, head) =>
            commit.run.0, new.public.as_str(), new.org.0, head.definition, head.status.as_str(), new.by.as_str(),
            new.acts_as.as_str(), label_text(&new.labels), new.test, &new.secret[..],
            new.parent.as_ref().map(|parent| parent.run.0), new.parent.as_ref().map(|parent| parent.path.as_str()),
            new.parent.as_ref().map(|parent| i64::from(parent.attempt)),
            new.parent.as_ref().map_or(0, |parent| i64::from(parent.depth)), new.group.as_deref(), new.created.0,
            time(head.started), time(head.finished), time(head.purge),
            new.parent.as_ref().map(|parent| parent.root.0));
        self.part(format_args!(
            ",\ncreated AS (INSERT INTO workflow_runs (id, public_id, org, definition, status, created_by, acts_as, labels,
               test, secret, parent_run, parent_step, parent_attempt, depth, place, created_at, started_at, finished_at,
               purge_at, root, version, position, hash, state)
             SELECT n.*, 1, ok.position, ok.hash, ok.state FROM unnest({names})
               AS n(run, public, org, definition, status, by, acts_as, labels, test, secret, parent_run, parent_step,
                    parent_attempt, depth, place, created, started, finished, purge, root)
             JOIN ok ON ok.run = n.run WHERE {allowed} RETURNING id)"
        ));
    }

    /// Inserts rows into one table, for the runs that were written. Adds nothing if there are no rows.
    fn insert<T>(
        &mut self,
        rows: impl ExactSizeIterator<Item = T>,
        insert: Insert<'_>,
        columns: impl FnOnce(&mut Self, std::vec::IntoIter<T>) -> String,
    ) {
        let Insert { table, names, conflict } = insert;
        if rows.len() == 0 {
            return;
        }
        let rows: Vec<T> = rows.collect();
        let arrays = columns(self, rows.into_iter());
        let wanted = names.split(", ").map(|name| format!("x.{name}")).collect::<Vec<_>>().join(", ");
        // Ordered, so that tables with numbered rows are numbered in write order.
        self.part(format_args!(
            ",\nput_{table} AS (INSERT INTO {table} AS t ({names}) SELECT {wanted} FROM unnest({arrays})
               WITH ORDINALITY AS x({names}, n) JOIN done ON done.id = x.run ORDER BY x.n {conflict})"
        ));
    }

    /// Deletes rows of one table, for the runs that were written. Adds nothing if there are no rows.
    fn delete<T>(
        &mut self,
        rows: Vec<T>,
        delete: Delete<'_>,
        columns: impl FnOnce(&mut Self, std::vec::IntoIter<T>) -> String,
    ) {
        let Delete { table, names, matching } = delete;
        if rows.is_empty() {
            return;
        }
        let arrays = columns(self, rows.into_iter());
        self.part(format_args!(
            ",\ncut_{table} AS (DELETE FROM {table} t USING unnest({arrays}) AS x({names}), done
             WHERE done.id = x.run AND {matching})"
        ));
    }

    /// The log, labels, values and attempts.
    fn history(&mut self, slot: Slot, commits: &[&'a Commit]) {
        let writer = self.arg(slot.id);
        self.part(format_args!(
            ",\nput_events AS (INSERT INTO workflow_events
               (run, version, writer, position, at, facts, payloads, hash, org)
             SELECT ok.run, ok.expect + 1, {writer}, ok.position, ok.at, ok.facts, ok.payloads, ok.hash, ok.org
             FROM ok JOIN done ON done.id = ok.run)"
        ));
        let labels = commits.iter().filter_map(|commit| Some((commit.run.0, &commit.create.as_ref()?.labels)));
        let labels = labels.flat_map(|(run, labels)| labels.iter().map(move |label| (run, label)));
        let mut labels: Vec<(i64, &String)> = labels.collect();
        labels.sort();
        labels.dedup();
        self.insert(
            labels.into_iter(),
            Insert { table: "run_labels", names: "run, label", conflict: "" },
            |this, rows| columns!(this, rows, (run, label) => *run, label.as_str()),
        );
        let values: Vec<_> =
            commits.iter().flat_map(|commit| commit.values.iter().map(|row| (commit.run.0, row))).collect();
        self.insert(
            values.into_iter(),
            Insert { table: "step_values", names: "run, id, payload", conflict: "" },
            |this, rows| columns!(this, rows, (run, value) => *run, i64::from(value.id.0), value.payload.as_str()),
        );
        // If a row is written twice the last one counts.
        let mut steps = BTreeMap::new();
        for commit in commits {
            steps.extend(commit.steps.iter().map(|row| ((commit.run.0, row.path.as_str(), row.attempt), row)));
        }
        let names = "run, step, attempt, status, since, ended_at, input, output, state";
        let again =
            "ON CONFLICT (run, step, attempt) DO UPDATE SET status = excluded.status, ended_at = excluded.ended_at,
               since = CASE t.status WHEN 'pending' THEN excluded.since ELSE t.since END,
               input = excluded.input, output = excluded.output, state = excluded.state";
        self.insert(steps.into_iter(), Insert { table: "workflow_step_runs", names, conflict: again }, |this, rows| {
            columns!(this, rows, ((run, path, attempt), row) =>
                *run, *path, i64::from(*attempt), row.status.as_str(), row.since.0, time(row.ended),
                row.input.map(|id| i64::from(id.0)), row.output.map(|id| i64::from(id.0)), row.state.as_str())
        });
    }

    /// Work, timers and gates.
    fn pending(&mut self, commits: &[&'a Commit]) {
        let gone = commits.iter().flat_map(|commit| commit.work.remove.iter().map(|key| (commit.run.0, key))).collect();
        let matching = "t.run = x.run AND t.step = x.step AND t.attempt = x.attempt";
        self.delete(
            gone,
            Delete { table: "work", names: "run, step, attempt", matching },
            |this, rows| columns!(this, rows, (run, key) => *run, key.path.as_str(), i64::from(key.attempt)),
        );
        let new: Vec<_> =
            commits.iter().flat_map(|commit| commit.work.put.iter().map(|work| (commit.run.0, work))).collect();
        let names = "run, step, attempt, org, kind, ready_at, node";
        self.insert(new.into_iter(), Insert { table: "work", names, conflict: "" }, |this, rows| {
            columns!(this, rows, (run, work) =>
                *run, work.key.path.as_str(), i64::from(work.key.attempt), work.org.0, work.kind.as_str(), work.ready.0,
                work.node.map(|node| node.0))
        });
        let (put, gone) = sorted(commits, |commit| &commit.timers, |timer| timer.key.as_str());
        self.delete(
            gone,
            Delete { table: "timers", names: "run, key", matching: "t.run = x.run AND t.key = x.key" },
            |this, rows| columns!(this, rows, (run, key) => *run, *key),
        );
        let again = "ON CONFLICT (run, key) DO UPDATE SET due = excluded.due";
        self.insert(
            put.into_iter(),
            Insert { table: "timers", names: "run, key, shard, due", conflict: again },
            |this, rows| columns!(this, rows, ((run, key), timer) => *run, *key, shard(*run), timer.due.0),
        );
        let orgs: BTreeMap<i64, i64> = commits.iter().map(|commit| (commit.run.0, commit.auth.org.0)).collect();
        let (put, gone) = sorted(commits, |commit| &commit.gates, |gate| gate.path.as_str());
        self.delete(
            gone,
            Delete { table: "gates", names: "run, step", matching: "t.run = x.run AND t.step = x.step" },
            |this, rows| columns!(this, rows, (run, path) => *run, *path),
        );
        let again = "ON CONFLICT (run, step) DO UPDATE SET org = excluded.org, since = excluded.since";
        self.insert(
            put.into_iter(),
            Insert { table: "gates", names: "run, step, org, since", conflict: again },
            |this, rows| columns!(this, rows, ((run, path), gate) => *run, *path, orgs[run], gate.since.0),
        );
    }

    /// Messages to other runs, messages that this run has read, and outbox notices.
    fn messages(&mut self, commits: &[&'a Commit]) {
        let mail: Vec<_> =
            commits.iter().flat_map(|commit| commit.mail.iter().map(|mail| (commit.run.0, mail))).collect();
        let read: Vec<(i64, i64)> =
            commits.iter().flat_map(|commit| commit.read.iter().map(|id| (commit.run.0, *id))).collect();
        if !mail.is_empty() {
            let arrays = columns!(self, mail.into_iter(), (run, mail) =>
                *run, mail.to.0, mail.key.as_str(), mail.body.as_str());
            // A message repeated by the commit that reads it is a duplicate. The delete below may be executed first, and
            // the row it deleted no longer conflicts with the insert.
            let fresh = if read.is_empty() {
                String::new()
            } else {
                let ids = columns!(self, read.iter().copied(), (_, id) => *id);
                format!(
                    "WHERE NOT EXISTS (SELECT 1 FROM mail m
                       WHERE m.run = x.recipient AND m.key = x.key AND m.id = ANY({ids}))"
                )
            };
            self.part(format_args!(
                ",\nput_mail AS (INSERT INTO mail (run, key, body) SELECT x.recipient, x.key, x.body
                 FROM unnest({arrays}) WITH ORDINALITY AS x(run, recipient, key, body, n) JOIN done ON done.id = x.run
                 {fresh} ORDER BY x.n ON CONFLICT DO NOTHING)"
            ));
        }
        self.delete(
            read,
            Delete { table: "mail", names: "run, id", matching: "t.run = x.run AND t.id = x.id" },
            |this, rows| columns!(this, rows, (run, id) => *run, *id),
        );
        let sent =
            commits.iter().flat_map(|commit| commit.sent.iter().map(|key| (commit.run.0, key.as_str()))).collect();
        self.delete(
            sent,
            Delete { table: "outbox", names: "run, key", matching: "t.run = x.run AND t.key = x.key" },
            |this, rows| columns!(this, rows, (run, key) => *run, *key),
        );
        // A notice that is delivered in the same commit is never written.
        let new = commits.iter().flat_map(|commit| {
            let left = commit.outbox.iter().filter(|notice| !commit.sent.contains(&notice.key));
            left.map(|notice| (commit.run.0, notice))
        });
        let new: Vec<_> = new.collect();
        let again = "ON CONFLICT DO NOTHING";
        let names = "run, key, body, due";
        self.insert(new.into_iter(), Insert { table: "outbox", names, conflict: again }, |this, rows| {
            columns!(this, rows, (run, notice) => *run, notice.key.as_str(), notice.body.as_str(), notice.due.0)
        });
    }

    fn counted(&mut self, slot: Slot, commits: &[&'a Commit]) {
        let rows = commits.iter().flat_map(|commit| commit.counted.iter().map(|row| (commit.run.0, row)));
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return;
        }
        let arrays = columns!(self, rows.into_iter(), (run, (counter, delta)) => *run, counter.as_str(), *delta);
        let writer = self.arg(slot.id);
        self.part(format_args!(
            ",\nput_counters AS (INSERT INTO counters AS t (key, writer, value)
             SELECT x.key, {writer}, sum(x.delta)::bigint FROM unnest({arrays}) AS x(run, key, delta)
             JOIN done ON done.id = x.run GROUP BY x.key ORDER BY x.key
             ON CONFLICT (key, writer) DO UPDATE SET value = t.value + excluded.value)"
        ));
    }
}

/// Rows to write, by run and key, and keys to delete that are not written again: the parts of one statement do not see
/// each other's effects.
type Sorted<'a, T> = (BTreeMap<(i64, &'a str), &'a T>, Vec<(i64, &'a str)>);

fn sorted<'a, T: Keyed<Key = String>>(
    commits: &[&'a Commit],
    diff: impl Fn(&'a Commit) -> &'a Diff<T>,
    key: impl Fn(&'a T) -> &'a str,
) -> Sorted<'a, T> {
    let mut put = BTreeMap::new();
    for commit in commits {
        put.extend(diff(commit).put.iter().map(|row| ((commit.run.0, key(row)), row)));
    }
    let gone = commits.iter().flat_map(|commit| diff(commit).remove.iter().map(|key| (commit.run.0, key.as_str())));
    let gone = gone.filter(|name| !put.contains_key(name)).collect();
    (put, gone)
}

pub fn shard(run: i64) -> i16 {
    i16::try_from(Share::shard(crate::RunId(run))).expect("there are few shards")
}

pub fn time(time: Option<Time>) -> Option<i64> {
    time.map(|time| time.0)
}
