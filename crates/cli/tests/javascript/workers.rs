//! Worker processes: reused, replaced, killed with their evaluation, and confined.

use super::{call, failure, javascript, javascript_of, run, success};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepwell_engine::{Kinds, StepCall};
use stepwell_steps::javascript::WORKER;
use stepwell_store::OrgId;
use stepwell_testing::eventually;

/// A pool whose processes can be told from those of other tests.
struct Marked {
    kinds: Kinds,
    program: PathBuf,
    _directory: tempfile::TempDir,
}

impl Marked {
    fn new(workers: usize) -> Marked {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("stepwell");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stepwell"), &program).unwrap();
        Marked { kinds: javascript_of(&program, workers), program, _directory: directory }
    }

    fn workers(&self) -> Vec<u32> {
        workers_of(&self.program)
    }
}

fn workers_of(program: &Path) -> Vec<u32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_ours = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(program.as_os_str().as_encoded_bytes())
    };
    pids.filter(is_ours).collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    tokio::task::block_in_place(|| eventually(what, || holds().then_some(())));
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_are_started_when_needed_and_used_again() {
    let marked = Marked::new(2);
    assert!(marked.workers().is_empty());
    for _ in 0..20 {
        success(run(&marked.kinds, call("return 1", json!({}))).await);
    }
    assert_eq!(marked.workers().len(), 1);
    let both: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn({
                let kinds = marked.kinds.clone();
                async move { success(run(&kinds, call("let n = 0; while (n < 1e6) n++; return n", json!({}))).await) }
            })
        })
        .collect();
    for one in both {
        one.await.unwrap();
    }
    assert_eq!(marked.workers().len(), 2);
    drop(marked.kinds);
    tokio::task::block_in_place(|| {
        eventually("the end of the workers", || workers_of(&marked.program).is_empty().then_some(()))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_up_an_attempt_kills_its_worker() {
    let marked = Marked::new(1);
    let kinds = marked.kinds.clone();
    let attempt = tokio::spawn(async move { run(&kinds, call("while (true) {}", json!({}))).await });
    until("a worker", || marked.workers().len() == 1).await;
    let worker = marked.workers()[0];
    attempt.abort();
    until("the end of the worker", || !marked.workers().contains(&worker)).await;
    assert_eq!(*success(run(&marked.kinds, call("return 2", json!({}))).await).body, json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_between_evaluations_is_replaced() {
    let marked = Marked::new(1);
    success(run(&marked.kinds, call("return 1", json!({}))).await);
    let worker = marked.workers()[0];
    kill(worker);
    until("the end of the worker", || !Path::new(&format!("/proc/{worker}/fd/0")).exists()).await;
    assert_eq!(*success(run(&marked.kinds, call("return 2", json!({}))).await).body, json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_with_an_evaluation_is_a_failure_that_says_so() {
    let marked = Marked::new(1);
    success(run(&marked.kinds, call("return 1", json!({}))).await);
    let (kinds, worker) = (marked.kinds.clone(), marked.workers()[0]);
    let before = processor_time(worker);
    let attempt =
        tokio::spawn(async move { run(&kinds, call("console.log('here'); while (true) {}", json!({}))).await });
    until("the code to run", || processor_time(worker) > before + 5).await;
    kill(worker);
    let (failure, reply) = failure(attempt.await.unwrap());
    assert_eq!((&*failure.code, failure.retryable), ("crashed", true));
    assert!(failure.message.contains("signal: 9"), "{}", failure.message);
    assert_eq!(reply.unwrap().log.unwrap()[0]["text"], "here");
}

/// In the system's ticks.
fn processor_time(pid: u32) -> u64 {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let field = line.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(11));
    field.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

// On one thread tasks begin in the order in which they were made.
#[tokio::test]
async fn the_code_of_an_organisation_runs_in_order_and_waiting_for_a_worker_costs_no_time_of_the_step() {
    let kinds = javascript(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut all = Vec::new();
    for n in 0..6 {
        let (kinds, order) = (kinds.clone(), order.clone());
        let code = "const end = Date.now() + 500; while (Date.now() < end); return 1";
        let one = tokio::spawn(async move {
            let outcome = run(&kinds, StepCall { timeout: Duration::from_secs(2), ..call(code, json!({})) }).await;
            success(outcome);
            order.lock().unwrap().push(n);
        });
        all.push(one);
    }
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_no_environment_no_files_and_few_system_calls() {
    let marked = Marked::new(1);
    success(run(&marked.kinds, call("return 1", json!({}))).await);
    let worker = marked.workers()[0];
    let read =
        |name: &str| String::from_utf8_lossy(&std::fs::read(format!("/proc/{worker}/{name}")).unwrap()).into_owned();
    assert_eq!(read("environ"), "");
    assert_eq!(std::fs::read_link(format!("/proc/{worker}/cwd")).unwrap(), Path::new("/"));
    assert_eq!(std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().count(), 3);
    let status = read("status");
    for expected in ["NoNewPrivs:\t1", "Seccomp:\t2", "Threads:\t1"] {
        assert!(status.contains(expected), "{expected}\n{status}");
    }
    assert_eq!(read("oom_score_adj").trim(), "1000");
    // Tests in containers often run as root; the worker never does.
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert!(!field("Uid:").split_whitespace().any(|id| id == "0"), "{status}");
    assert_eq!((&*field("CapEff:"), &*field("CapPrm:")), ("0000000000000000", "0000000000000000"), "{status}");
    if rustix::process::geteuid().is_root() {
        assert_eq!((&*field("Gid:"), &*field("Groups:")), ("65534\t65534\t65534\t65534", ""), "{status}");
    }
    let limits = read("limits");
    let limit = |name: &str| {
        limits.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace().rev().nth(2).unwrap().to_owned()
    };
    assert_eq!(
        (limit("Max file size").as_str(), limit("Max open files").as_str(), limit("Max core file").as_str()),
        ("0", "3", "0")
    );
    assert_ne!(limit("Max address space"), "unlimited");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_code_of_one_organisation_does_not_stop_the_code_of_another() {
    let kinds = javascript(2);
    let endless: Vec<_> = (0..6)
        .map(|_| {
            let kinds = kinds.clone();
            let call = StepCall { timeout: Duration::from_secs(3_600), ..call("for (;;);", json!({})) };
            tokio::spawn(async move { run(&kinds, call).await })
        })
        .collect();
    let mut other = call("return 7", json!({}));
    other.caller.org = OrgId(2);
    // Without a share of its own it would wait for minutes.
    assert_eq!(*success(run(&kinds, other).await).body, json!(7));
    assert!(endless.iter().all(|one| !one.is_finished()));
    endless.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_step_gets_no_more_time_and_memory_than_the_server_allows() {
    let worker = vec![env!("CARGO_BIN_EXE_stepwell").into(), WORKER.into()];
    let max_timeout = Duration::from_millis(300);
    let javascript = stepwell_steps::javascript::Config { worker, workers: 1, max_timeout, max_memory: 2 << 20 };
    let kinds = stepwell_steps::kinds(stepwell_steps::Config { javascript, ..stepwell_steps::Config::default() });
    let endless = StepCall { timeout: Duration::from_secs(100 * 365 * 86_400), ..call("for (;;);", json!({})) };
    let (late, _) = failure(run(&kinds, endless).await);
    assert_eq!(&*late.code, "timeout");
    assert!(late.message.contains("within 0.3 s, which is this server's limit"), "{}", late.message);
    let mut hungry = call("", json!({}));
    hungry.input = Arc::new(json!({"code": "return 'x'.repeat(8 << 20).length", "ctx": {}, "memory": 1 << 30}));
    let (short, _) = failure(run(&kinds, hungry).await);
    assert_eq!(&*short.code, "memory_limit");
    assert!(short.message.contains("2 MB, which is this server's limit"), "{}", short.message);
}

#[tokio::test]
async fn checking_code_runs_none_of_it() {
    let kinds = javascript(1);
    let check = async |code: &str| kinds.get("javascript").unwrap().check(&json!({"code": code})).await;
    for good in
        ["return 1", "for (;;);", "while (true) await 0", "const f = () => { return {} }; // }", "with (ctx) {}"]
    {
        assert_eq!(check(good).await, Ok(()), "{good}");
    }
    for escape in [
        "}); for (;;); (async () => {",
        "}, (() => { for (;;); })(), async () => {",
        "} for (;;); async function other() {",
        "}",
    ] {
        assert!(check(escape).await.is_err(), "{escape}");
    }
    let wrong = check("let a = 1;\nlet b = ;").await.unwrap_err();
    assert!(wrong.contains("(2:"), "{wrong}");
    let first = check("let b = ;").await.unwrap_err();
    assert!(first.contains("(1:9)"), "{first}");
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
