//! Secrets and connections: who may set and use them, and a change of the master key.

use crate::harness::{Harness, failure, list};
use serde_json::json;
use std::sync::Arc;
use stepwell_engine::commands::{NewConnection, NewSecret};
use stepwell_engine::{Caller, Connections, Engine, EnvironmentSecrets, Error, SealedStore, Vault, doctor};
use stepwell_store::{Change, OrgId, Record, RecordChange, RecordFilter, Registry};

const OLD: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NEW: &str = "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=";

fn vault(text: &str) -> Arc<Vault> {
    Arc::new(Vault::read(text).unwrap_or_else(|why| panic!("{why}")))
}

async fn harness(keys: &str) -> Harness {
    let vault = vault(keys);
    Harness::with(|config| stepwell_engine::Config { vault, ..config }).await
}

fn value(text: &str) -> NewSecret {
    NewSecret { value: Some(text.into()), hosts: None }
}

fn url(text: &str) -> NewConnection {
    NewConnection { url: Some(text.into()), ..NewConnection::default() }
}

/// One call with a secret in its arguments, and one without.
fn workflow(name: &str) -> serde_json::Value {
    json!({"name": name, "tasks": {
        "use": {"tool": "ok", "args": {"key": "Bearer {{secrets.KEY}}"}},
        "echo": {"tool": "ok", "args": {"said": "{{input.said}}"}, "needs": ["use"]},
    }})
}

async fn body_of(harness: &Harness, run: &str, step: &str) -> serde_json::Value {
    let view = harness.ended(run).await;
    assert_eq!(view.status, "completed", "{:?}", failure(&view));
    let task = view.tasks.iter().find(|task| &*task.path == step).unwrap();
    json!(task.output)
}

async fn records(harness: &Harness, kind: &str) -> Vec<Record> {
    let filter = RecordFilter { kind: kind.into(), org: None, prefix: String::new(), after: None, limit: 100 };
    harness.store.records(filter).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn only_administrators_see_and_set_secrets_and_what_was_done_is_in_the_trail() {
    let harness = harness(OLD).await;
    let ann =
        harness.user("ann", &["workflow.define", "workflow.run", "workflow.read", "secret:*", "connection:*"]).await;
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Forbidden { .. })), "{result:?}");
    refused(harness.engine.secrets(&ann).put("KEY", value("the-secret")).await.map(drop));
    refused(harness.engine.secrets(&ann).list().await.map(drop));
    refused(harness.engine.secrets(&ann).remove("KEY").await);
    refused(harness.engine.connections(&ann).put("shop", url("postgres://db/shop")).await.map(drop));
    refused(harness.engine.connections(&ann).list().await.map(drop));
    refused(harness.engine.secrets(&ann).rotate().await.map(drop));
    let made = harness.engine.secrets(&harness.admin).put("KEY", value("the-secret")).await.unwrap();
    assert_eq!((made.is.version, made.is.short), (1, false));
    let hosts = NewSecret { value: None, hosts: Some(list(&["api.example.com"])) };
    let changed = harness.engine.secrets(&harness.admin).put("KEY", hosts).await.unwrap();
    assert_eq!((changed.is.version, changed.is.hosts), (1, list(&["api.example.com"])));
    assert_eq!(harness.engine.secrets(&harness.admin).put("KEY", value("another")).await.unwrap().is.version, 2);
    harness.engine.secrets(&harness.admin).remove("KEY").await.unwrap();
    assert!(matches!(harness.engine.secrets(&harness.admin).remove("KEY").await, Err(Error::NotFound { .. })));
    let trail = harness.trail(OrgId(1)).await;
    let told: Vec<_> = trail.iter().filter(|row| row.row.target == "KEY").map(|row| &*row.row.action).collect();
    assert_eq!(told, ["secret.put", "secret.put", "secret.put", "secret.remove"]);
    assert!(trail.iter().all(|row| !row.row.detail.contains("the-secret")));
}

#[tokio::test(start_paused = true)]
async fn wrong_names_values_and_hosts_are_refused() {
    let harness = harness(OLD).await;
    for name in ["", "1A", "a-b", "a.b", "a b", &"x".repeat(101)] {
        let refused = harness.engine.secrets(&harness.admin).put(name, value("the-secret")).await;
        assert!(matches!(refused, Err(Error::Input { .. })), "{name}");
    }
    for value in [NewSecret::default(), value(""), value(&"x".repeat(16 * 1024 + 1))] {
        assert!(matches!(harness.engine.secrets(&harness.admin).put("KEY", value).await, Err(Error::Input { .. })));
    }
    let hosts = NewSecret { hosts: Some(list(&["https://a.b", "a.b"])), ..value("the-secret") };
    let Err(Error::Inputs(faults)) = harness.engine.secrets(&harness.admin).put("KEY", hosts).await else {
        panic!("no host")
    };
    assert_eq!((faults.len(), &*faults[0].0), (1, "hosts[0]"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_filled_in_and_comes_back_by_name_in_its_step_and_in_others() {
    let harness = harness(OLD).await;
    harness.engine.secrets(&harness.admin).put("KEY", value("the-secret")).await.unwrap();
    harness.define(&harness.admin, workflow("it")).await;
    let input = json!({"said": "it was the-secret"});
    let trigger = stepwell_engine::commands::Trigger::new("it", input);
    let run = harness.engine.runs(&harness.admin).trigger(trigger).await.unwrap().run;
    assert_eq!(body_of(&harness, &run, "use").await, json!({"key": "Bearer {{secrets.KEY}}"}));
    assert_eq!(body_of(&harness, &run, "echo").await, json!({"said": "it was {{secrets.KEY}}"}));
}

#[tokio::test(start_paused = true)]
async fn another_value_counts_from_the_next_step_on_and_none_is_a_clear_failure() {
    let harness = harness(OLD).await;
    let document = json!({"name": "it", "tasks": {"use": {"tool": "base", "args": {"key": "{{secrets.KEY}}!"}}}});
    harness.define(&harness.admin, document).await;
    let ended = async || harness.ended(&harness.start(&harness.admin, "it").await).await;
    assert_eq!(failure(&ended().await).as_deref(), Some("unknown_secret"));
    // Too short to be hidden, so that it shows.
    for text in ["one", "two"] {
        harness.engine.secrets(&harness.admin).put("KEY", value(text)).await.unwrap();
        let run = harness.start(&harness.admin, "it").await;
        assert_eq!(body_of(&harness, &run, "use").await, json!({"key": format!("{text}!")}));
    }
    harness.engine.secrets(&harness.admin).remove("KEY").await.unwrap();
    assert_eq!(failure(&ended().await).as_deref(), Some("unknown_secret"));
}

#[tokio::test(start_paused = true)]
async fn an_organisation_has_its_own_secrets_and_connections() {
    let harness = harness(OLD).await;
    let (other, key) = harness.engine.organisations(&Caller::local("me")).create("other", None).await.unwrap();
    let theirs = harness.engine.identity().authenticate(&key).await.unwrap();
    harness.engine.secrets(&harness.admin).put("KEY", value("ours")).await.unwrap();
    harness.engine.connections(&harness.admin).put("shop", url("postgres://db/shop")).await.unwrap();
    assert!(harness.engine.secrets(&theirs).list().await.unwrap().is_empty());
    assert!(harness.engine.connections(&theirs).list().await.unwrap().is_empty());
    assert!(matches!(harness.engine.secrets(&theirs).get("KEY").await, Err(Error::NotFound { .. })));
    assert!(matches!(harness.engine.connections(&theirs).remove("shop").await, Err(Error::NotFound { .. })));
    harness.engine.secrets(&theirs).put("KEY", value("their")).await.unwrap();
    let safe = SealedStore::new(Arc::new(harness.store.clone()), vault(OLD), Arc::new(EnvironmentSecrets));
    for (org, text) in [(OrgId(1), "ours"), (other.id, "their")] {
        assert_eq!(&*safe.secret(org, "KEY").await.unwrap().unwrap().value, text);
    }
    // Somebody with a hand in the database gives one organisation's to the other, under its own name.
    let all = records(&harness, "secret").await;
    let [ours, their] = [OrgId(1), other.id].map(|org| all.iter().find(|record| record.org == org).unwrap());
    let moved = RecordChange::Replace(Record { body: ours.body.clone(), ..their.clone() });
    harness.store.change(Change { records: vec![moved], ..Change::default() }).await.unwrap().unwrap();
    let opened = safe.secret(other.id, "KEY").await;
    assert!(matches!(opened, Err(Error::Broken(why)) if why.contains("belongs to another")));
    let mut report = doctor::Report::default();
    doctor::check_sealed(&safe, &mut report).await.unwrap();
    assert_eq!(report.faults.len(), 1, "{report:?}");
    assert!(report.faults[0].message.starts_with(&format!("organisation {}: the secret KEY", other.id.0)));
}

#[tokio::test(start_paused = true)]
async fn everything_is_sealed_anew_under_the_first_key_and_then_the_old_one_can_go() {
    let harness = harness(OLD).await;
    let local = Caller::local("me");
    harness.engine.secrets(&harness.admin).put("KEY", value("the-secret")).await.unwrap();
    harness.engine.connections(&harness.admin).put("shop", url("postgres://u:{{secrets.KEY}}@db/shop")).await.unwrap();
    let start = async |keys: &str| {
        let config = stepwell_engine::Config { vault: vault(keys), ..stepwell_engine::Config::new(Default::default()) };
        Engine::start(Arc::new(harness.store.clone()), config).await
    };
    let Err(why) = start(NEW).await else { panic!("another key is noticed") };
    assert!(why.to_string().contains("this node's master key is not the one secrets were sealed with"), "{why}");
    let both = start(&format!("{NEW},{OLD}")).await.unwrap();
    let done = both.secrets(&local).rotate().await.unwrap();
    assert_eq!((done.sealed, done.locked.len()), (2, 0));
    assert_eq!(both.secrets(&local).rotate().await.unwrap().sealed, 0);
    assert!(start(OLD).await.is_err());
    start(NEW).await.unwrap();
    let safe = SealedStore::new(Arc::new(harness.store.clone()), vault(NEW), Arc::new(EnvironmentSecrets));
    assert_eq!(&*safe.secret(OrgId(1), "KEY").await.unwrap().unwrap().value, "the-secret");
    let shop = safe.connection(OrgId(1), "shop").await.unwrap().unwrap();
    assert_eq!(shop.url, "postgres://u:the-secret@db/shop");
    assert!(harness.trail(OrgId(1)).await.iter().any(|row| row.row.action == "secret.rotate"));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_secret_cannot_be_opened_fails_and_others_go_on() {
    let harness = harness(OLD).await;
    harness.engine.secrets(&harness.admin).put("KEY", value("the-secret")).await.unwrap();
    harness.define(&harness.admin, workflow("it")).await;
    harness.define(&harness.admin, json!({"name": "other", "tasks": {"a": {"tool": "ok"}}})).await;
    // Somebody with a hand in the database spoils it.
    let record = records(&harness, "secret").await.remove(0);
    let mut body: serde_json::Value = serde_json::from_str(&record.body).unwrap();
    let sealed = body["sealed"]["data"].as_str().unwrap_or_else(|| panic!("{body:#}")).to_string();
    let other = if sealed.starts_with('A') { "B" } else { "A" };
    body["sealed"]["data"] = json!(format!("{other}{}", &sealed[1..]));
    let spoilt = RecordChange::Replace(Record { body: body.to_string(), ..record });
    harness.store.change(Change { records: vec![spoilt], ..Change::default() }).await.unwrap().unwrap();
    let run = harness.start(&harness.admin, "it").await;
    assert_eq!(failure(&harness.ended(&run).await).as_deref(), Some("secret_locked"));
    assert_eq!(harness.called(), 0);
    let run = harness.start(&harness.admin, "other").await;
    assert_eq!(harness.ended(&run).await.status, "completed");
}

#[tokio::test(start_paused = true)]
async fn without_a_master_key_nothing_can_be_set_and_all_else_works() {
    let harness = Harness::new().await;
    let Err(Error::NotNow(why)) = harness.engine.secrets(&harness.admin).put("KEY", value("the-secret")).await else {
        panic!("there is no key");
    };
    assert!(why.contains("STEPWELL_MASTER_KEY"), "{why}");
    assert!(records(&harness, "vault").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_secret_bound_to_hosts_is_not_given_to_what_is_no_request() {
    let harness = harness(OLD).await;
    let bound = NewSecret { hosts: Some(list(&["api.example.com"])), ..value("the-secret") };
    harness.engine.secrets(&harness.admin).put("KEY", bound).await.unwrap();
    harness.define(&harness.admin, workflow("it")).await;
    let trigger = stepwell_engine::commands::Trigger::new("it", json!({"said": ""}));
    let run = harness.engine.runs(&harness.admin).trigger(trigger).await.unwrap().run;
    assert_eq!(failure(&harness.ended(&run).await).as_deref(), Some("secret_bound"));
    assert_eq!(harness.called(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_takes_its_secrets_at_the_moment_of_the_call() {
    let harness = harness(OLD).await;
    let safe = SealedStore::new(Arc::new(harness.store.clone()), vault(OLD), Arc::new(EnvironmentSecrets));
    let shop = async || safe.connection(OrgId(1), "shop").await;
    assert!(shop().await.unwrap().is_none());
    let new = NewConnection { write: true, rows: Some(7), ..url("postgres://u:{{secrets.DB}}@db.example/shop") };
    let made = harness.engine.connections(&harness.admin).put("shop", new).await.unwrap().is;
    assert_eq!((made.host.as_deref(), &*made.database), (Some("db.example"), "shop"));
    let missing = shop().await.map(drop).unwrap_err();
    assert!(missing.to_string().contains("no secret named DB"), "{missing}");
    harness.engine.secrets(&harness.admin).put("DB", value("p@ss/word")).await.unwrap();
    let first = shop().await.unwrap().unwrap();
    assert_eq!((&*first.url, first.write, first.rows), ("postgres://u:p%40ss%2Fword@db.example/shop", true, Some(7)));
    harness.engine.secrets(&harness.admin).put("DB", value("another")).await.unwrap();
    let second = shop().await.unwrap().unwrap();
    assert!(second.identity != first.identity && second.url.contains("another"));
    let bound = NewSecret { value: None, hosts: Some(list(&["other.example"])) };
    harness.engine.secrets(&harness.admin).put("DB", bound).await.unwrap();
    assert!(shop().await.map(drop).unwrap_err().to_string().contains("may be sent only to other.example"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_several_hosts_needs_all_of_them_allowed() {
    let harness = harness(OLD).await;
    let safe = SealedStore::new(Arc::new(harness.store.clone()), vault(OLD), Arc::new(EnvironmentSecrets));
    let secret = NewSecret { value: Some("p".repeat(20)), hosts: Some(list(&["*.example.org"])) };
    harness.engine.secrets(&harness.admin).put("DB", secret).await.unwrap();
    for (hosts, allowed) in [
        ("a.example.org", true),
        ("a.example.org:5433,b.example.org", true),
        ("evil.com,a.example.org", false),
        ("a.example.org,evil.com:5432", false),
    ] {
        let new = url(&format!("postgres://u:{{{{secrets.DB}}}}@{hosts}/shop"));
        harness.engine.connections(&harness.admin).put("shop", new).await.unwrap();
        assert_eq!(safe.connection(OrgId(1), "shop").await.is_ok(), allowed, "{hosts}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_removed_and_created_again_is_another_one() {
    let harness = harness(OLD).await;
    let safe = SealedStore::new(Arc::new(harness.store.clone()), vault(OLD), Arc::new(EnvironmentSecrets));
    let connections = harness.engine.connections(&harness.admin);
    let made = async || {
        connections.put("shop", url("postgres://u:p@db.example/shop")).await.unwrap();
        safe.connection(OrgId(1), "shop").await.unwrap().unwrap().identity
    };
    let first = made().await;
    assert_eq!(made().await, first);
    connections.remove("shop").await.unwrap();
    assert_ne!(made().await, first);
}

#[tokio::test(start_paused = true)]
async fn a_file_of_the_server_s_machine_is_the_operator_s_to_give() {
    let harness = harness(OLD).await;
    let (_, key) = harness.engine.organisations(&Caller::local("me")).create("other", None).await.unwrap();
    let theirs = harness.engine.identity().authenticate(&key).await.unwrap();
    let refused = harness.engine.connections(&theirs).put("file", url("sqlite:/var/lib/x.db")).await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })));
    harness.engine.connections(&harness.admin).put("file", url("sqlite:/var/lib/x.db")).await.unwrap();
}
