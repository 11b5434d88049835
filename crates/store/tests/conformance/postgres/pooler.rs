//! Behind a pooler in transaction mode.

use super::PgStore;
use crate::sample::*;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use stepwell_store::*;
use stepwell_testing::{Cluster, Schema};

/// A PgBouncer in transaction mode, with few server connections.
struct Pooler {
    child: Child,
    port: u16,
    schemas: Vec<Schema>,
    _directory: tempfile::TempDir,
}

impl Pooler {
    /// Starts a pooler with this many databases, each of which is a schema.
    async fn start(count: usize) -> Pooler {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
        let program = program.map(PathBuf::from).into_iter().find(|path| path.is_file());
        let program = program.expect("no pgbouncer: scripts/setup.sh installs it");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let schemas: Vec<Schema> = (0..count).map(|_| Cluster::shared().schema()).collect();
        let server: tokio_postgres::Config = Cluster::shared().url().parse().unwrap();
        let to = format!("host=127.0.0.1 port={} dbname=postgres user=postgres", server.get_ports()[0]);
        let databases = schemas
            .iter()
            .enumerate()
            .map(|(n, schema)| format!("d{n} = {to} connect_query='SET search_path TO {}'\n", schema.name()));
        let directory = tempfile::tempdir().unwrap();
        // PgBouncer does not run as root and must be able to read the directory.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = directory.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n{}[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 2\n",
            databases.collect::<String>()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.args(["-u", "postgres"]);
        }
        let child = command.arg("-q").arg(config).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pooler = Pooler { child, port, schemas, _directory: directory };
        super::eventually("a pooler that listens", async || {
            std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        })
        .await;
        pooler
    }

    async fn open(&self, n: usize) -> PgStore {
        PgStore::open(&PostgresOptions { prepared: false, ..PostgresOptions::new(self.url(n)) }).await.unwrap()
    }

    fn url(&self, n: usize) -> String {
        format!("postgres://postgres@127.0.0.1:{}/d{n}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

macro_rules! pooled {
    ($($case:ident),* $(,)?) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn the_conformance_cases_pass_behind_a_pooler() {
            let count = [$(stringify!($case)),*].len();
            let pooler = Pooler::start(count).await;
            let mut n = 0;
            $({
                println!("{}", stringify!($case));
                crate::cases::$case(&pooler.open(n).await).await;
                n += 1;
            })*
            assert_eq!(n, pooler.schemas.len());
        }
    };
}

pooled![
    a_loaded_run_contains_what_was_committed,
    a_commit_on_an_older_version_is_refused_and_changes_nothing,
    a_refused_commit_does_not_affect_the_rest_of_its_batch,
    a_run_is_created_once,
    a_unique_key_belongs_to_the_first_run_until_it_expires,
    a_change_of_grants_refuses_decisions_made_before_it,
    the_log_is_read_by_version_and_the_feed_by_position,
    an_attempt_is_rewritten_and_the_newest_is_loaded,
    concurrent_commits_lose_nothing,
    a_duplicate_row_is_an_error_and_does_not_affect_other_commits,
    a_full_group_refuses_the_run_and_leaves_nothing_behind,
    a_run_refused_by_its_group_leaves_no_rows,
    an_older_queued_run_goes_first,
    no_two_claims_cover_one_attempt,
    claims_take_turns_between_organisations,
    work_is_claimed_at_commit_and_orphaned_when_its_node_is_gone,
    no_organisation_exceeds_its_limit_of_claimed_attempts,
    timers_come_due_in_order_and_are_cleared,
    mail_is_delivered_once_and_removed_when_read,
    due_notices_are_returned_in_write_order,
    a_changed_definition_is_a_new_version_and_an_equal_one_is_not,
    runs_are_listed_newest_first_by_page_and_filter,
    purge_removes_all_rows_of_the_run,
    a_refused_change_leaves_nothing_behind,
    only_one_of_many_concurrent_changes_of_a_record_wins,
    each_organisation_has_its_own_audit_hash_chain,
    concurrent_counting_loses_nothing,
    only_a_finished_run_s_payloads_are_erased_and_its_log_stays,
    a_version_and_its_change_are_written_together_or_not_at_all,
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_in_transaction_mode_is_noticed_and_nothing_is_prepared() {
    let pooler = Pooler::start(1).await;
    let store = PgStore::open(&PostgresOptions::new(pooler.url(0))).await.unwrap();
    // It polls: a process that could listen would hear one hint at the start.
    let mut heard = store.hear().unwrap();
    for _ in 0..3 {
        let hint = tokio::time::timeout(super::PATIENCE, heard.recv()).await.expect("another hint").unwrap();
        assert!(hint.ready);
    }
    // Connections to the server change hands between writers and readers.
    let runs = (1..=60).map(|run| {
        let store = &store;
        async move {
            accepted(store, create(run)).await;
            accepted(store, next(run, 1)).await;
            store.load(RunId(run)).await.unwrap().unwrap().version
        }
    });
    assert_eq!(futures_util::future::join_all(runs).await, [Version(2); 60]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_processes_poll_instead_of_listening() {
    let pooler = Pooler::start(1).await;
    let store = pooler.open(0).await;
    let mut heard = store.hear().unwrap();
    assert!(heard.recv().await.unwrap().ready);
    // With a direct URL for LISTEN the hints arrive at once.
    let url = format!("postgres://postgres@127.0.0.1:{}/d0", pooler.port);
    let around = Some(pooler.schemas[0].url().to_string());
    let options = PostgresOptions { prepared: false, listen_url: around, ..PostgresOptions::new(url) };
    let other = PgStore::open(&options).await.unwrap();
    let mut heard = other.hear().unwrap();
    super::eventually("a process that listens", async || {
        store.tell(Hint { runs: vec![RunId(5)], ..Hint::default() });
        let hint = tokio::time::timeout(std::time::Duration::from_millis(50), heard.recv()).await.ok()?.ok()?;
        hint.runs.contains(&RunId(5)).then_some(())
    })
    .await;
    accepted(&other, create(1)).await;
}
