//! Whole runs that call tools of servers, with the real engine.

use crate::harness::{Harness, bad, python, script, soon, stdio, until, vault};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stepwell_engine::commands::{Approval, Decision, RunView, Source, Trigger};
use stepwell_engine::upstream::State;
use stepwell_engine::{Caller, Config, Engine};
use stepwell_steps::mcp::ServerConfig;
use stepwell_store::memory::MemoryStore;

/// An engine with servers, like a node.
struct Node {
    engine: Engine,
    harness: Harness,
}

fn ada() -> Caller {
    Caller::local("ada")
}

impl Node {
    async fn start(store: MemoryStore, servers: Vec<ServerConfig>) -> Node {
        let harness = Harness::on(store.clone(), servers);
        let steps = stepwell_steps::Config { upstreams: Some(harness.upstreams.clone()), ..Default::default() };
        let config = Config { vault: vault(), ..Config::new(stepwell_steps::kinds(steps)) };
        let engine = Engine::start(Arc::new(store), config).await.unwrap();
        Node { engine, harness }
    }

    async fn run(&self, document: Value, input: Value) -> String {
        let text = document.to_string();
        self.engine.workflows(&ada()).define(Source { text: &text, file: None }).await.unwrap();
        let name = document["name"].as_str().unwrap();
        self.engine.runs(&ada()).trigger(Trigger::new(name, input)).await.unwrap().run
    }

    async fn ended(&self, run: &str) -> RunView {
        soon(self.engine.runs(&ada()).wait(run)).await.unwrap();
        self.engine.runs(&ada()).get(run).await.unwrap()
    }

    async fn asked(&self) -> Approval {
        let poll = async {
            loop {
                if let Some(approval) = self.engine.gates(&ada()).list(None, 10).await.unwrap().0.pop() {
                    return approval;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        soon(poll).await
    }

    async fn stop(self) {
        self.engine.shutdown(Duration::from_secs(5)).await;
        self.harness.upstreams.stop().await;
    }
}

fn body(view: &RunView, step: &str) -> Value {
    assert_eq!(view.status, "completed", "{view:?}");
    let step = view.tasks.iter().find(|task| &*task.path == step).unwrap();
    json!(step)["output"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_becomes_an_approval_whose_answer_another_process_uses() {
    let store = MemoryStore::default();
    let node = Node::start(store.clone(), vec![bad(&[])]).await;
    let document = json!({"name": "asks", "tasks": {"paint": {"tool": "bad__ask", "args": {"word": "wall"}}}});
    let run = node.run(document, json!({})).await;
    let approval = node.asked().await;
    assert_eq!((approval.run.as_str(), approval.step.as_str()), (run.as_str(), "paint"));
    assert_eq!(approval.asks["message"], "Which color?");
    assert_eq!(approval.asks["form"]["required"], json!(["color"]));
    node.stop().await;

    let node = Node::start(store, vec![bad(&[])]).await;
    let digest = || approval.digest.clone();
    let accept = |data: Value| Decision { approve: true, data: Some(data), digest: digest(), ..Decision::default() };
    let wrong = node.engine.gates(&ada()).answer(&run, "paint", accept(json!({"colour": 1}))).await;
    assert!(wrong.is_err(), "{wrong:?}");
    node.engine.gates(&ada()).answer(&run, "paint", accept(json!({"color": "blue"}))).await.unwrap();
    let output = body(&node.ended(&run).await, "paint");
    assert!(output.to_string().contains(r#""content":{"color":"blue"}"#), "{output}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn denying_a_question_cancels_the_run() {
    let place = tempfile::tempdir().unwrap();
    let (log, server) = noting(&place);
    let node = Node::start(MemoryStore::default(), vec![server]).await;
    let document = json!({"name": "asks", "tasks": {"paint": {"tool": "bad__ask", "args": {}}}});
    let run = node.run(document, json!({})).await;
    let digest = node.asked().await.digest;
    let no = Decision { digest, ..Decision::default() };
    node.engine.gates(&ada()).answer(&run, "paint", no).await.unwrap();
    assert_eq!(node.ended(&run).await.status, "cancelled");
    told(&log, "decline ask kept by the client").await;
    node.stop().await;
}

/// A file where the server notes what it is told, and the server.
fn noting(place: &tempfile::TempDir) -> (std::path::PathBuf, ServerConfig) {
    let log = place.path().join("log");
    let server = bad(&[("LOG", log.to_str().unwrap())]);
    (log, server)
}

async fn told(log: &std::path::Path, what: &str) {
    until(what, || std::fs::read_to_string(log).ok()?.lines().any(|line| line == what).then_some(())).await;
}

/// Waits until the step is suspended, and returns what it says.
async fn under_way(node: &Node, run: &str) -> String {
    let poll = async {
        loop {
            let view = node.engine.runs(&ada()).get(run).await.unwrap();
            let said = view.waiting_for.iter().find_map(|waiting| waiting.message.clone());
            if let Some(said) = said.filter(|said| said.contains("page 3 of 7")) {
                return said.to_string();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(poll).await
}

fn status<'a>(view: &'a RunView, step: &str) -> &'a str {
    view.tasks.iter().find(|task| &*task.path == step).map(|task| task.status).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_cancels_its_task_even_if_the_server_is_away() {
    let (store, place) = (MemoryStore::default(), tempfile::tempdir().unwrap());
    let (log, server) = noting(&place);
    let node = Node::start(store.clone(), vec![server.clone()]).await;
    let document = json!({"name": "slow", "tasks": {"print": {"tool": "bad__task_slow", "args": {}}}});
    let run = node.run(document, json!({})).await;
    under_way(&node, &run).await;
    node.stop().await;
    let absent = bad(&[("WAIT_FOR", place.path().join("never").to_str().unwrap())]);
    let node = Node::start(store.clone(), vec![absent]).await;
    node.engine.runs(&ada()).cancel(&run, None).await.unwrap();
    node.stop().await;
    assert!(std::fs::read_to_string(&log).unwrap_or_default().is_empty());
    let node = Node::start(store, vec![server]).await;
    told(&log, "cancel task-0").await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_whose_time_is_up_takes_back_its_task_and_its_question() {
    let place = tempfile::tempdir().unwrap();
    let (log, server) = noting(&place);
    let node = Node::start(MemoryStore::default(), vec![server]).await;
    node.harness.ready("bad").await;
    // On a busy machine the time may be up in the middle of a poll, which would be tried again.
    let step = |tool: &str| json!({"tool": tool, "args": {}, "timeout": "2s", "retries": 0});
    let run = node.run(json!({"name": "slow", "tasks": {"print": step("bad__task_slow")}}), json!({})).await;
    under_way(&node, &run).await;
    let view = node.ended(&run).await;
    assert_eq!((view.status, status(&view, "print")), ("failed", "timeout"), "{view:?}");
    told(&log, "cancel task-0").await;
    // However often the task was polled, it was one execution.
    assert_eq!(node.engine.organisations(&ada()).usage().await.unwrap().executions, 1);
    let run = node.run(json!({"name": "asks", "tasks": {"paint": step("bad__ask")}}), json!({})).await;
    let view = node.ended(&run).await;
    assert_eq!((view.status, status(&view, "paint")), ("failed", "timeout"), "{view:?}");
    told(&log, "cancel ask kept by the client").await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_a_server_that_is_still_starting() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("go");
    let config = ServerConfig { plain_names: true, ..bad(&[("WAIT_FOR", file.to_str().unwrap())]) };
    let node = Node::start(MemoryStore::default(), vec![config]).await;
    let document = json!({"name": "early", "tasks": {"use": {"tool": "steady", "args": {}, "retries": 0}}});
    let run = node.run(document, json!({})).await;
    let poll = async {
        loop {
            let view = node.engine.runs(&ada()).get(&run).await.unwrap();
            let mut said = view.waiting_for.iter().filter_map(|waiting| waiting.message.clone());
            if said.any(|said| said.contains("waiting for the MCP server bad")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(poll).await;
    std::fs::write(&file, "").unwrap();
    assert!(body(&node.ended(&run).await, "use").to_string().contains("steady"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_ends_with_the_task_that_it_started() {
    let node = Node::start(MemoryStore::default(), vec![bad(&[])]).await;
    let document = json!({"name": "slow", "tasks": {"print": {"tool": "bad__task", "args": {"word": "page"}}}});
    let run = node.run(document, json!({})).await;
    let output = body(&node.ended(&run).await, "print");
    assert!(output.to_string().contains(r#"{"said":{"word":"page"}}"#), "{output}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_retried_until_its_crashed_server_is_back() {
    let node = Node::start(MemoryStore::default(), vec![bad(&[])]).await;
    node.harness.ready("bad").await;
    node.harness.fails("bad__crash", json!({})).await;
    until("the crash", || matches!(node.harness.server("bad").state, State::Down { .. }).then_some(())).await;
    let retries = json!({"attempts": 10, "backoff": "fixed", "delay": "200ms"});
    let document = json!({"name": "again", "tasks": {"use": {"tool": "bad__steady", "args": {}, "retry": retries}}});
    let run = node.run(document, json!({})).await;
    assert!(body(&node.ended(&run).await, "use").to_string().contains("steady"));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_documents_run_on_the_tools_of_a_server() {
    let seeds = stdio("seeds", &python(), &[&script("seed_server.py")]);
    let node = Node::start(MemoryStore::default(), vec![ServerConfig { plain_names: true, ..seeds }]).await;
    node.harness.ready("seeds").await;
    let document = json!({"name": "research", "flow": {
        "start": {"name": "search", "tool": "knowledge_search", "args": {"query": "{{input.topic}}"}, "next": "summarize"},
        "summarize": {"name": "summarize", "tool": "knowledge_get", "args": {"id": "{{input.doc_id}}"}, "next": "notify"},
        "notify": {"name": "notify", "tool": "push_note", "args": {"message": "Research complete"}, "done": true},
    }});
    let run = node.run(document, json!({"topic": "AI safety"})).await;
    let view = node.ended(&run).await;
    assert_eq!(view.status, "completed", "{view:?}");
    assert_eq!(view.output, Some(json!("sent: Research complete")));
    let document = json!({"name": "who", "flow": {
        "start": {"name": "check_admin", "tool": "is_admin", "args": {}, "branch": [
            {"if": "result == true", "then": "admin_action"},
            {"if": "result == false", "then": "user_action"},
        ]},
        "admin_action": {"tool": "knowledge_add", "args": {"title": "a", "body": "b"}, "done": true},
        "user_action": {"tool": "get_greeting", "args": {}, "done": true},
    }});
    let run = node.run(document, json!({})).await;
    assert_eq!(node.ended(&run).await.output, Some(json!("Hello!")));
    node.stop().await;
}

const VICTIM: &str = "STEPWELL_TEST_VICTIM";

/// `sleep` does not read its input, so only the system ends it.
#[test]
fn a_process_whose_server_is_killed_dies_with_it() {
    let mark = "86399.25";
    if std::env::var_os(VICTIM).is_some() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(async {
            let _harness = Harness::new(vec![stdio("stuck", "sleep", &[mark])]);
            std::future::pending::<()>().await;
        });
    }
    let living = || {
        let commands = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
        commands.filter_map(|path| std::fs::read(path).ok()).any(|line| line == format!("sleep\0{mark}\0").as_bytes())
    };
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", "runs::a_process_whose_server_is_killed_dies_with_it"]).env(VICTIM, "1");
    let mut victim = victim.stdout(std::process::Stdio::null()).spawn().unwrap();
    stepwell_testing::eventually("the process to start", || living().then_some(()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    stepwell_testing::eventually("the process to die", || (!living()).then_some(()));
}
