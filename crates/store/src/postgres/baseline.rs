//! The baseline of `stepwell bench`: what the database can do alone, and what a load costs it. Nothing else uses this.

use super::args::args;
use super::hosts::Database;
use super::session::{Purpose, Session, round_trips};
use crate::{Error, PostgresOptions};

/// Cumulative costs of the database. Only differences are meaningful.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Costs {
    pub round_trips: u64,
    /// Rows inserted, updated and deleted.
    pub rows: u64,
    pub wal_bytes: u64,
}

impl Costs {
    pub fn since(self, before: Costs) -> Costs {
        Costs {
            round_trips: self.round_trips - before.round_trips,
            rows: self.rows - before.rows,
            wal_bytes: self.wal_bytes - before.wal_bytes,
        }
    }
}

/// A table with its size and the size of its indexes, in bytes.
pub type Size = (String, u64, u64);

/// A temporary schema on a server, dropped by [`Trial::end`].
pub struct Trial {
    options: PostgresOptions,
    name: String,
    server: Session,
}

impl Trial {
    pub async fn begin(options: &PostgresOptions, name: String) -> Result<Trial, Error> {
        let server = Session::connect(&Database::new(options.clone()), Purpose::Maintenance).await?;
        server.script(&format!("CREATE SCHEMA {name}")).await?;
        let joint = if options.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{joint}options=-csearch_path%3D{name}", options.url);
        server.script(&format!("SET search_path = {name}")).await?;
        Ok(Trial { options: PostgresOptions { url, ..options.clone() }, name, server })
    }

    /// Options that open a store in this schema.
    pub fn options(&self) -> &PostgresOptions {
        &self.options
    }

    pub async fn end(self) -> Result<(), Error> {
        Ok(self.server.script(&format!("DROP SCHEMA {} CASCADE", self.name)).await?)
    }

    pub async fn costs(&self) -> Result<Costs, Error> {
        // Backends report their statistics with a delay.
        tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
        let sql = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint,
                     (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables
                      WHERE schemaname = $1)";
        let round_trips = round_trips();
        let row = self.server.one(sql, args![self.name]).await?;
        let [wal_bytes, rows] = [0, 1].map(|n| row.as_ref().map_or(0, |row| row.get::<_, i64>(n).unsigned_abs()));
        Ok(Costs { round_trips, rows, wal_bytes })
    }

    pub async fn sizes(&self) -> Result<Vec<Size>, Error> {
        let sql = "SELECT c.relname::text, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c
                   WHERE c.relkind = 'r' AND c.relnamespace = $1::text::regnamespace
                   ORDER BY pg_total_relation_size(c.oid) DESC LIMIT 5";
        let rows = self.server.query(sql, args![self.name]).await?;
        let size = |row: &tokio_postgres::Row, n| row.get::<_, i64>(n).unsigned_abs();
        Ok(rows.iter().map(|row| (row.get(0), size(row, 1), size(row, 2))).collect())
    }

    /// Copies every finished run this many times, to simulate a long history.
    pub async fn multiply(&self, times: i64) -> Result<(), Error> {
        let copies = [
            "INSERT INTO workflow_runs (id, public_id, org, definition, status, version, position, created_by, acts_as, labels,
               test, secret, parent_run, parent_step, parent_attempt, depth, place, created_at, started_at, finished_at,
               purge_at, erased_at, hash, state)
             SELECT id - (k << 44), public_id || '_' || k, org, definition, status, version, position, created_by, acts_as,
               labels, test, secret, parent_run, parent_step, parent_attempt, depth, place, created_at, started_at,
               finished_at, purge_at, erased_at, hash, state
             FROM workflow_runs, generate_series(1, $1::bigint) k WHERE finished_at IS NOT NULL",
            "INSERT INTO workflow_events (run, version, writer, position, at, facts, payloads, hash, org)
             SELECT run - (k << 44), version, -k::int * 1000 - writer, position, at, facts, payloads, hash, org
             FROM workflow_events, generate_series(1, $1::bigint) k",
            "INSERT INTO workflow_step_runs (run, step, attempt, status, since, ended_at, input, output, state)
             SELECT run - (k << 44), step, attempt, status, since, ended_at, input, output, state
             FROM workflow_step_runs, generate_series(1, $1::bigint) k",
            "INSERT INTO step_values (run, id, payload)
             SELECT run - (k << 44), id, payload FROM step_values, generate_series(1, $1::bigint) k",
        ];
        for sql in copies {
            self.server.execute_untimed(sql, args![times]).await?;
        }
        self.server.execute_untimed("ANALYZE", &[]).await?;
        Ok(())
    }

    /// Creates tables of the same shape and returns a `pgbench` script. Each of its transactions writes what a step's
    /// commit writes: the run's row, a log row, an attempt that ends and one that starts, two values, work.
    pub async fn pgbench_script(&self, runs: u32) -> Result<String, Error> {
        self.server
            .script(
                "CREATE TABLE y_runs (LIKE workflow_runs INCLUDING ALL);
                 CREATE TABLE y_events (LIKE workflow_events INCLUDING ALL);
                 CREATE TABLE y_steps (LIKE workflow_step_runs INCLUDING ALL);
                 CREATE TABLE y_values (LIKE step_values INCLUDING ALL);
                 CREATE TABLE y_work (LIKE work INCLUDING ALL); CREATE SEQUENCE y_numbers CACHE 1000",
            )
            .await?;
        let fill = "INSERT INTO y_runs (id, public_id, org, definition, status, version, position, created_by, acts_as, test,
                      secret, depth, created_at, hash, state)
                    SELECT n, 'run_' || n, 1, 1, 'running', 1, 1, 'bench', '*', false, decode(repeat('00', 16), 'hex'), 0, 1,
                      decode(repeat('00', 32), 'hex'), repeat('s', 300) FROM generate_series(1, $1::bigint) n";
        self.server.execute(fill, args![i64::from(runs)]).await?;
        Ok(format!(
            "\\set run random(1, {runs})\n\
             SELECT nextval('y_numbers') AS n \\gset\n\
             BEGIN;\n\
             UPDATE y_runs SET version = :n, position = :n, state = repeat('t', 300) WHERE id = :run;\n\
             INSERT INTO y_events VALUES\n\
               (:run, :n, 1, :n, 1, repeat('f', 250), repeat('d', 140), decode(repeat('00', 32), 'hex'));\n\
             INSERT INTO y_steps VALUES (:run, 'a' || :n, 1, 'success', 1, 2, 1, 2, repeat('s', 120)),\n\
               (:run, 'b' || :n, 1, 'running', 1, NULL, 3, NULL, repeat('s', 120));\n\
             INSERT INTO y_values VALUES (:run, :n * 2, repeat('v', 60)), (:run, :n * 2 + 1, repeat('v', 60));\n\
             DELETE FROM y_work WHERE run = :run;\n\
             INSERT INTO y_work VALUES (:run, 'b' || :n, 1, 1, 'tool', 1, 1);\n\
             COMMIT;\n"
        ))
    }
}
