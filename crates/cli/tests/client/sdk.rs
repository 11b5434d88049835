//! The Rust SDK (`stepwell-client`) against the real server.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;
use stepwell_client::build::{Step, Steps, Workflow, index, input, item};
use stepwell_client::testing::{Case, Settings, ThrowAwayServer};
use stepwell_client::webhooks::{answer_wait, verify};
use stepwell_client::{
    Answer, Client, Error, NewSchedule, RunFilters, RunOptions, RunStatus, StepStatus, TriggerOptions, WorkflowFilters,
};
use stepwell_testing::TestStore;

const GATED: &str = "name: gated
tasks:
  ask: {approval: {message: 'Pay {{input.amount}}?', form: {type: object}}}
  paid: {needs: ask, wait_for_webhook: true}
  thank: {needs: paid, tool: echo, args: {amount: '{{tasks.paid.body.amount}}'}}
output: {amount: '{{tasks.thank.body.amount}}'}
";

const WAITS: &str = "name: waits
tasks: {a: {tool: echo}, w: {needs: a, wait_for_webhook: true}}
output: '{{tasks.w.body.n}}'
";

const PAY: &str = "name: pay
tasks:
  call: {url: 'http://ADDRESS/', body: {back: '{{wait.paid.url}}'}}
  paid: {needs: call, wait_for_webhook: true}
output: '{{tasks.paid.body}}'
";

fn binary() -> Option<PathBuf> {
    Some(env!("CARGO_BIN_EXE_stepwell").into())
}

/// A server on the store that suites run on, and a client of it.
fn check<A: Future<Output = Result<(), Error>>>(test: impl FnOnce(Client, ThrowAwayServer) -> A) {
    let at = TestStore::new();
    let environment = at.environment().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let server = ThrowAwayServer::with(Settings { binary: binary(), environment, ..Settings::default() }).unwrap();
    let client = server.client().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(test(client, server)).unwrap();
}

const HELLO: &str = "name: hello
tasks: {say: {tool: echo, args: {text: 'Hello, {{input.name}}!'}}}
output: '{{tasks.say.body.text}}'
";

fn patient() -> RunOptions {
    RunOptions { timeout: Some(stepwell_testing::PATIENCE), ..RunOptions::default() }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let settings = Settings { binary: binary(), config: Some("lisen: x".into()), ..Settings::default() };
    let Err(error) = ThrowAwayServer::with(settings) else { panic!("it started") };
    assert!(error.to_string().contains("did you mean `listen`"), "{error}");
}

#[test]
fn definitions_runs_and_lists() {
    check(async |client, _server| {
        assert_eq!(client.define(HELLO).await?.version, 1);
        assert_eq!(client.define_as("hello", &format!("{HELLO}description: x\n")).await?.version, 2);
        assert_eq!(client.workflow("hello").await?.description.as_deref(), Some("x"));
        let faults = client.check("name: x\ntasks: {a: {tool: echo, needs: b}}").await.unwrap_err();
        assert_eq!(faults.problem().unwrap().errors[0].code.as_deref(), Some("unknown-step"), "{faults}");
        assert_eq!(client.check(HELLO).await?, []);
        let odd = client.check(&format!("{HELLO}defaults: {{timeout: 30}}\n")).await?;
        assert_eq!(odd[0].code.as_deref(), Some("suspicious-duration"));
        let labels = BTreeMap::from([("team".to_string(), "sales".to_string())]);
        let trigger = TriggerOptions { labels, ..TriggerOptions::default() };
        let run = client.run("hello", json!({"name": "Ann"}), RunOptions { trigger, ..patient() }).await?;
        assert_eq!(
            (run.status, run.output, run.labels["team"].as_str()),
            (RunStatus::Completed, json!("Hello, Ann!"), "sales")
        );
        assert_eq!(run.tasks["say"].status, StepStatus::Success);
        let once = || TriggerOptions { idempotency_key: Some("order-7".into()), ..TriggerOptions::default() };
        let first = client.trigger("hello", json!({"name": "a"}), once()).await?;
        let again = client.trigger("hello", json!({"name": "a"}), once()).await?;
        assert_eq!((first.is_new, again.is_new, &first.data.run_id), (true, false, &again.data.run_id));
        let reused = client.trigger("hello", json!({"name": "b"}), once()).await.unwrap_err();
        assert!(reused.has_code("idempotency-key-reused") && !reused.is_temporary(), "{reused}");
        for _ in 0..3 {
            client.trigger("hello", Value::Null, TriggerOptions::default()).await?;
        }
        let filters = RunFilters { workflow: Some("hello".into()), limit: Some(2), ..RunFilters::default() };
        assert_eq!(client.runs(filters.clone()).all().await?.len(), 5);
        let labelled = RunFilters { labels: BTreeMap::from([("team".into(), "sales".into())]), ..filters };
        assert_eq!(client.runs(labelled).all().await?.len(), 1);
        let hell = WorkflowFilters { q: Some("hell".into()), ..WorkflowFilters::default() };
        assert_eq!(client.workflows(hell).limit(1).next().await?.unwrap().name, "hello");
        let tomorrow = jiff::Timestamp::now() + jiff::Span::new().hours(24);
        let at = TriggerOptions { at: Some(tomorrow.to_string()), ..TriggerOptions::default() };
        let delay = TriggerOptions { delay: Some(Duration::from_secs(1_234_567)), ..TriggerOptions::default() };
        for later in [at, delay] {
            let started = client.trigger("hello", json!({}), later).await?.data;
            assert!(started.status == RunStatus::Scheduled && started.scheduled_for.is_some(), "{started:?}");
            client.cancel(&started.run_id, None).await?;
        }
        client.delete_workflow("hello").await?;
        assert!(client.workflow("hello").await.unwrap_err().has_code("not-found"));
        Ok(())
    });
}

#[test]
fn gates_webhooks_secrets_and_schedules() {
    check(async |client, _server| {
        client.define(GATED).await?;
        let id = client.trigger("gated", json!({"amount": 5}), TriggerOptions::default()).await?.data.run_id;
        let gate = gate(&client, &id).await?;
        assert_eq!(gate.asks["message"], "Pay 5?");
        let answer = Answer { digest: gate.digest, data: Some(json!({"limit": 7})), ..Answer::default() };
        client.approve(&id, "ask", answer).await?;
        client.deliver(&id, "paid", json!({"amount": 7})).await?;
        assert_eq!(client.wait(&id, Some(stepwell_testing::PATIENCE)).await?.output, json!({"amount": 7}));

        let id = client.trigger("gated", json!({"amount": 5}), TriggerOptions::default()).await?.data.run_id;
        let late = client.wait(&id, Some(Duration::from_millis(1))).await;
        assert_eq!(late.unwrap_err(), Error::TimedOut);
        self::gate(&client, &id).await?;
        client.deny(&id, "ask", Answer { comment: Some("too much".into()), ..Answer::default() }).await?;
        assert_eq!(client.wait(&id, Some(stepwell_testing::PATIENCE)).await?.status, RunStatus::Cancelled);
        assert!(!client.retry(&id).await?.status.is_ended());
        assert_eq!(client.cancel(&id, Some("not today")).await?.status, RunStatus::Cancelled);
        let refused = client.cancel(&id, None).await.unwrap_err();
        assert_eq!(refused.problem().unwrap().status_now.as_deref(), Some("cancelled"));

        let secret = client.set_secret("TOKEN", Some("longer-than-eight"), Some(&["api.example.com"])).await?;
        assert_eq!((secret.version, secret.hosts), (1, vec!["api.example.com".to_string()]));
        assert_eq!(client.secrets().all().await?.len(), 1);
        client.delete_secret("TOKEN").await?;
        assert_eq!(client.secrets().all().await?.len(), 0);

        client.define("name: nightly\ntrigger: {cron: '30 2 * * *'}\ntasks: {a: {tool: echo}}").await?;
        for schedules in [client.schedules(None).await?, client.schedules(Some("nightly")).await?] {
            assert_eq!((schedules.len(), schedules[0].cron.as_deref()), (1, Some("30 2 * * *")));
        }
        let daily = NewSchedule { cron: "@daily".into(), input: json!({"text": "again"}), ..NewSchedule::default() };
        let added = client.add_schedule("nightly", &daily).await?;
        assert!(added.by.is_some() && client.schedules(Some("nightly")).await?.len() == 2);
        client.remove_schedule(&added.id).await?;
        assert_eq!(client.schedules(Some("nightly")).await?.len(), 1);
        Ok(())
    });
}

/// The open gate of a run, once the run has reached it.
async fn gate(client: &Client, run: &str) -> Result<stepwell_client::Approval, Error> {
    let mut events = client.watch(run);
    while events.next().await?.is_some() {
        for gate in client.approvals().all().await? {
            if gate.run_id == run {
                return Ok(gate);
            }
        }
    }
    panic!("{run} has no gate");
}

#[test]
fn watching_and_answering_survive_a_killed_server() {
    check(async |client, mut server| {
        client.define(WAITS).await?;
        let id = client.trigger("waits", Value::Null, TriggerOptions::default()).await?.data.run_id;
        let mut events = client.watch(&id);
        let mut seen = Vec::new();
        while seen.last().is_none_or(|(_, step, _): &(i64, Option<String>, String)| step.as_deref() != Some("w")) {
            let event = events.next().await?.unwrap();
            seen.push((event.version, event.step, event.kind));
        }
        server.kill();
        let gone = client.cancel(&id, None).await.unwrap_err();
        assert!(matches!(gone, Error::ConnectionFailed { sent: false, .. }), "{gone}");
        server.restart()?;
        client.deliver(&id, "w", json!({"n": 3})).await?;
        while let Some(event) = events.next().await? {
            seen.push((event.version, event.step, event.kind));
        }
        let (end, seen) = seen.split_last().unwrap();
        assert_eq!(end.2, "end");
        let mut log = client.watch_after(&id, 0);
        let mut all = Vec::new();
        while let Some(event) = log.next().await? {
            all.push((event.version, event.step, event.kind));
        }
        assert_eq!(seen, &all[..all.len() - 1], "without gaps or repetitions");
        assert_eq!(client.get(&id).await?.output, json!(3));
        Ok(())
    });
}

/// Takes one request of a step, and returns its headers and its body.
fn receive(listener: &TcpListener) -> (Vec<(String, String)>, Vec<u8>) {
    let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0, "the request was cut off");
        bytes.extend_from_slice(&buffer[..n]);
        let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_lowercase(), value.to_string())).collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, n)| n.parse().unwrap());
        if bytes.len() >= at + 4 + length {
            stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
            return (headers, bytes[at + 4..at + 4 + length].to_vec());
        }
    }
}

#[test]
fn signed_requests_are_verified_and_waits_are_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    check(async move |client, _server| {
        client.set_secret("WEBHOOK_SIGNING_SECRET", Some("whsec_c3RlcHdlbGwtdGVzdC1zZWNyZXQ="), None).await?;
        client.define(&PAY.replace("ADDRESS", &address.to_string())).await?;
        let id = client.trigger("pay", Value::Null, TriggerOptions::default()).await?.data.run_id;
        let (headers, payload) = tokio::task::spawn_blocking(move || receive(&listener)).await.unwrap();
        let header = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        verify(&payload, header, "whsec_c3RlcHdlbGwtdGVzdC1zZWNyZXQ=")?;
        assert!(matches!(verify(&payload, header, "other"), Err(Error::InvalidSignature(_))));
        let sent: Value = serde_json::from_slice(&payload).unwrap();
        answer_wait(sent["back"].as_str().unwrap(), json!({"ok": true})).await?;
        assert_eq!(client.wait(&id, Some(stepwell_testing::PATIENCE)).await?.output, json!({"ok": true}));
        Ok(())
    });
}

#[test]
fn what_the_builder_prints_is_accepted_and_loads_back() {
    let mut order = Workflow::new("order");
    let charge = order.add(Step::tool("charge it", "echo", json!({"id": input().at("order_id"), "yes": "no"})));
    let ask = order.add(Step::approval("ask", json!({"message": format!("Ship {}?", charge.at("body.id"))})));
    let mut body = Steps::default();
    body.add(Step::tool("one", "echo", json!({"item": item(), "at": index(), "for": charge.at("body.id")})));
    let each = order.add(Step::for_each("each", input().at("items"), body).needs(&ask));
    order.add(
        Step::tool("undo", "echo", json!({})).when(each.at("status").ne("success").and(&charge.at("body.id").gt(3))),
    );
    order.output(json!({"id": charge.at("body.id")}));
    let yaml = order.to_yaml().unwrap();
    let case = Case { input: json!({"order_id": 7, "items": [1, 2]}), binary: binary(), ..Case::default() };
    let case = Case {
        calls: json!({"charge it": {"body": {"id": 7}}, "each[0].one": {}, "each[1].one": {}}),
        answers: json!({"ask": "approve"}),
        ..case
    };
    let run = case.simulate(&yaml).unwrap();
    assert_eq!((run.status.as_str(), &run.output), ("completed", &json!({"id": 7})), "{yaml}");
    let missing = Case { answers: json!({}), ..case.clone() }.simulate(&yaml);
    assert!(matches!(missing, Err(Error::Testing(_))), "{missing:?}");
    check(async |client, _server| {
        client.check(&yaml).await?;
        client.define(&yaml).await?;
        let loaded = Workflow::load(&client.workflow("order").await?.definition)?;
        assert_eq!(loaded.definition()?, order.definition()?);
        Ok(())
    });
}
