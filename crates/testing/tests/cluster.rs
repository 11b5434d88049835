//! The cluster, its schemas and the proxy, against a real PostgreSQL.

// In a test a panic is the report.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};
use stepwell_testing::{Cluster, Proxy, eventually, execute};

#[test]
fn each_schema_is_its_own_and_goes_away() {
    let cluster = Cluster::shared();
    let (one, two) = (cluster.schema(), cluster.schema());
    one.execute("CREATE TABLE runs (n int); INSERT INTO runs VALUES (1)");
    two.execute("CREATE TABLE runs (n int)");
    one.execute("DELETE FROM runs");
    let gone = format!("SELECT * FROM {}.runs", one.name());
    execute(cluster.url(), &gone).unwrap();
    drop(one);
    assert!(execute(cluster.url(), &gone).is_err());
    two.execute("SELECT * FROM runs");
}

#[tokio::test]
async fn a_schema_can_be_made_inside_of_a_runtime() {
    Cluster::shared().schema().execute("CREATE TABLE runs (n int)");
}

#[test]
fn what_was_committed_survives_an_immediate_restart_and_a_stop() {
    let cluster = Cluster::start();
    execute(cluster.url(), "CREATE TABLE runs (n int); INSERT INTO runs VALUES (1)").unwrap();
    cluster.restart_immediate();
    execute(cluster.url(), "SELECT 1 / count(*) FROM runs").unwrap();
    cluster.stop();
    assert!(execute(cluster.url(), "SELECT 1").is_err());
    cluster.start_again();
    execute(cluster.url(), "SELECT 1 / count(*) FROM runs").unwrap();
}

#[test]
fn a_proxy_can_be_cut_silenced_and_healed() {
    let cluster = Cluster::start();
    let proxy = Proxy::to(cluster.address());
    let url = proxy.url(cluster.url());
    execute(&url, "SELECT 1").unwrap();
    let sleeper = {
        let url = url.clone();
        std::thread::spawn(move || execute(&url, "SELECT pg_sleep(600)"))
    };
    let asleep = "SELECT 1 / count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
    eventually("the sleeper", || (execute(cluster.url(), asleep).is_ok()).then_some(()));
    proxy.cut();
    assert!(sleeper.join().unwrap().is_err(), "the connection is gone");
    assert!(execute(&url, "SELECT 1").is_err());
    proxy.heal();
    execute(&url, "SELECT 1").unwrap();
    proxy.silence();
    let waiter = std::thread::spawn(move || execute(&url, "CREATE TABLE late (n int)"));
    // What is asked meanwhile does not reach the server, however long one waits.
    assert!(execute(cluster.url(), "SELECT * FROM late").is_err() && !waiter.is_finished());
    proxy.heal();
    waiter.join().unwrap().unwrap();
    execute(cluster.url(), "SELECT * FROM late").unwrap();
}

/// Not a test of its own: the next one runs it in a process that is killed.
#[test]
#[ignore = "run by a_killed_process_leaves_nothing_behind"]
fn a_cluster_that_waits_to_be_killed() {
    let cluster = Cluster::start();
    println!("\nurl {}", cluster.url());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    // PostgreSQL may run as somebody else.
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["a_cluster_that_waits_to_be_killed", "--exact", "--ignored", "--nocapture"]);
    let mut child = child.env("TMPDIR", home.path()).stdout(Stdio::piped()).spawn().unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(out).map_while(Result::ok);
    let url = lines.find_map(|line| line.strip_prefix("url ").map(str::to_string)).unwrap();
    execute(&url, "SELECT 1").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the server's end", || (execute(&url, "SELECT 1").is_err()).then_some(()));
    eventually("an empty directory", || (std::fs::read_dir(home.path()).unwrap().next().is_none()).then_some(()));
}
