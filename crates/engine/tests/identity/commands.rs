//! Every command checks a right: callers without any get nothing out of it. The list of commands is read from the source,
//! so a new command fails this test until it is called here.

use crate::harness::{Harness, list, with};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use stepwell_core::event::Verdict;
use stepwell_core::simulate::script::Script;
use stepwell_core::time::Millis;
use stepwell_engine::commands::*;
use stepwell_engine::{Caller, Error, PolicyEffect, Subscription};
use stepwell_store::OrgId;

/// Commands that need no right, and why that is safe.
const FREE: [(&str, &str); 9] = [
    ("Workflows::check", "reads only the text that the caller sends"),
    ("Workflows::state", "of a version that the caller has"),
    ("Organisations::usage", "the caller's own organisation, numbers only"),
    ("Runs::get_after_change", "after a command that has checked the right; without payloads"),
    ("McpServers::offered", "for the server's own use"),
    ("Gates::last_refusal", "the caller's own answers"),
    ("Keys::list", "the caller's own keys"),
    ("Keys::create", "the caller's own, in person, with no more rights than the caller's"),
    ("Users::sign_in_link", "for the caller's own account, in person"),
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The public methods of the handles with a caller, as `Handle::method`.
fn commands() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands");
    let mut found = BTreeSet::new();
    for file in files(&folder) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut handle = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("impl ").and_then(|rest| rest.strip_suffix("<'_> {")) {
                handle = Some(name).filter(|name| !["Inbound", "Identity"].contains(name));
            } else if line == "}" {
                handle = None;
            }
            let method = line.strip_prefix("    pub async fn ").or_else(|| line.strip_prefix("    pub fn "));
            if let (Some(handle), Some(method)) = (handle, method) {
                found.insert(format!("{handle}::{}", method.split(['(', '<']).next().unwrap()));
            }
        }
    }
    assert!(found.len() > 80, "{found:?}");
    found
}

type Answers = Vec<(&'static str, Result<(), Error>)>;

struct Scene<'a> {
    harness: &'a Harness,
    caller: &'a Caller,
    run: &'a str,
}

impl Scene<'_> {
    async fn runs(&self) -> Answers {
        let (engine, run) = (&self.harness.engine, self.run);
        let runs = engine.runs(self.caller);
        let labels = BTreeMap::from([("a".to_string(), "b".to_string())]);
        let query = RunQuery::default;
        let source = Source { text: r#"{"name": "t", "tasks": {"a": {"sleep": 1}}}"#, file: None };
        let watched = runs.trigger_and_watch(Trigger::new("w", json!({}))).await.map(drop);
        vec![
            ("Runs::trigger", runs.trigger(Trigger::new("w", json!({}))).await.map(drop)),
            ("Runs::trigger_and_watch", watched),
            ("Runs::test", runs.test(source, json!({})).await.map(drop)),
            ("Runs::get", runs.get(run).await.map(drop)),
            ("Runs::definition", runs.definition(run).await.map(drop)),
            ("Runs::list", runs.list(query()).await.map(drop)),
            ("Runs::page", runs.page(query()).await.map(drop)),
            ("Runs::events", runs.events(run, 0, 10).await.map(drop)),
            ("Runs::steps", runs.steps(run, &StepQuery { limit: 10, ..StepQuery::default() }).await.map(drop)),
            ("Runs::wait", runs.wait(run).await),
            ("Runs::cancel", runs.cancel(run, None).await),
            ("Runs::cancel_all", runs.cancel_all(query(), None).await.map(drop)),
            ("Runs::release", runs.release(run).await),
            ("Runs::retry", runs.retry(run, Retry::SameVersion).await),
            ("Runs::retry_all", runs.retry_all(query(), Retry::Newest).await.map(drop)),
            ("Runs::retry_preview", runs.retry_preview(run, Retry::Newest).await.map(drop)),
            ("Runs::end", runs.end(run).await.map(drop)),
            ("Runs::rerun", runs.rerun(run, None).await.map(drop)),
            ("Runs::label", runs.label(run, &labels).await),
            ("Runs::erase", runs.erase(run).await),
            ("Runs::discard", runs.discard(run).await),
        ]
    }

    async fn steps(&self) -> Answers {
        let (engine, run) = (&self.harness.engine, self.run);
        let (steps, gates) = (engine.steps(self.caller), engine.gates(self.caller));
        let success = Override { outcome: Ok(json!(1)), comment: None };
        let yes = Decision { approve: true, ..Decision::default() };
        let refusal = Refusal { step: "gate".into(), reason: "none".into() };
        vec![
            ("Steps::ready", steps.ready(run, "gate").await),
            ("Steps::ready", steps.ready(run, "nap").await),
            ("Steps::settle", steps.settle(run, "gate", Verdict::Fail).await),
            ("Steps::deliver_to", steps.deliver_to(run, "gate", json!(1)).await),
            ("Steps::override_step", steps.override_step(run, "nap", success).await),
            ("Gates::answer", gates.answer(run, "gate", yes).await),
            ("Gates::list", gates.list(None, 10).await.map(drop)),
            ("Gates::get", gates.get(run, "gate").await.map(drop)),
            ("Gates::link", gates.link(run, "gate", "admin").await.map(drop)),
            ("Gates::note_refusal", gates.note_refusal(run, refusal).await),
        ]
    }

    async fn reviews(&self) -> Answers {
        let reviews = self.harness.engine.reviews(self.caller);
        vec![
            ("Reviews::list", reviews.list(true).await.map(drop)),
            ("Reviews::get", reviews.get("w").await.map(drop)),
            ("Reviews::accept", reviews.accept("w", Reviewing::default()).await.map(drop)),
            ("Reviews::refuse", reviews.refuse("w", Reviewing::default()).await.map(drop)),
        ]
    }

    async fn workflows(&self) -> Answers {
        let workflows = self.harness.engine.workflows(self.caller);
        let source = || Source { text: r#"{"name": "w", "tasks": {"a": {"sleep": 1}}}"#, file: None };
        let checked = workflows.check(source()).await.unwrap();
        vec![
            ("Workflows::define", workflows.define(source()).await.map(drop)),
            ("Workflows::define_as", workflows.define_as(source(), Defining::default()).await.map(drop)),
            ("Workflows::simulate", workflows.simulate(Rehearsed::Stored("w"), Script::default()).await.map(drop)),
            ("Workflows::missing", workflows.missing(&checked).await.map(drop)),
            ("Workflows::define_checked", workflows.define_checked(checked, Defining::default()).await.map(drop)),
            ("Workflows::check_only", workflows.check_only(source()).await.map(drop)),
            ("Workflows::check_named", workflows.check_named(source()).await.map(drop)),
            ("Workflows::tools", workflows.tools().await.map(drop)),
            ("Workflows::exposed", workflows.exposed().await.map(drop)),
            ("Workflows::find", workflows.find("w").await.map(drop)),
            ("Workflows::list", workflows.list().await.map(drop)),
            ("Workflows::page", workflows.page(WorkflowQuery::default()).await.map(drop)),
            ("Workflows::get", workflows.get("w").await.map(drop)),
            ("Workflows::look_up", workflows.look_up("w").await.map(drop)),
            ("Workflows::restore", workflows.restore("w").await.map(drop)),
            ("Workflows::versions", workflows.versions("w").await.map(drop)),
            ("Workflows::version", workflows.version("w", 1).await.map(drop)),
            ("Workflows::delete", workflows.delete("w").await),
            ("Workflows::enable", workflows.enable("w", false).await),
            ("Workflows::assign", workflows.assign("w", Some("s".into())).await),
            ("Workflows::pause", workflows.pause("w", None).await),
            ("Workflows::resume", workflows.resume("w", None).await),
            ("Workflows::schedule", workflows.schedule("w").await.map(drop)),
            ("Workflows::schedules", workflows.schedules().await.map(drop)),
            ("Workflows::add_schedule", workflows.add_schedule("w", &json!({"cron": "@daily"})).await.map(drop)),
            ("Workflows::remove_schedule", workflows.remove_schedule("s").await),
            ("Workflows::hooks", workflows.hooks("w").await.map(drop)),
            ("Workflows::rotate_hooks", workflows.rotate_hooks("w").await.map(drop)),
        ]
    }

    async fn people(&self) -> Answers {
        let (engine, me) = (&self.harness.engine, self.caller);
        let (users, roles, keys) = (engine.users(me), engine.roles(me), engine.keys(me));
        let new = NewUser { name: "x".into(), roles: vec![], grants: vec![] };
        let admins = NewKey { user: Some("admin".into()), name: "k".into(), ..NewKey::default() };
        let (organisations, audit) = (engine.organisations(me), engine.audit(me));
        let plan = Subscription { plan: Some("pro".into()), limits: None };
        vec![
            ("Users::list", users.list().await.map(drop)),
            ("Users::get", users.get("admin").await.map(drop)),
            ("Users::create", users.create(new).await.map(drop)),
            ("Users::change", users.change("admin", UserChange::default()).await.map(drop)),
            ("Users::disable", users.disable("admin").await),
            ("Users::sign_in_link", users.sign_in_link(Some("admin")).await.map(drop)),
            ("Roles::list", roles.list().await.map(drop)),
            ("Roles::put", roles.put("crew", list(&["workflow.read"])).await.map(drop)),
            ("Roles::remove", roles.remove("crew").await),
            ("Keys::create", keys.create(admins).await.map(drop)),
            ("Organisations::list", organisations.list().await.map(drop)),
            ("Organisations::create", organisations.create("mine", None).await.map(drop)),
            ("Organisations::change_plan", organisations.change_plan(OrgId(1), plan).await.map(drop)),
            ("Audit::list", audit.list(AuditQuery::default()).await.map(drop)),
            ("Audit::verify", audit.verify().await.map(drop)),
            ("Audit::export", audit.export(None).await.map(drop)),
            ("Audit::anchor", audit.anchor().await.map(drop)),
        ]
    }

    async fn settings(&self) -> Answers {
        let (engine, me) = (&self.harness.engine, self.caller);
        let (secrets, connections, queries) = (engine.secrets(me), engine.connections(me), engine.queries(me));
        let (policies, servers, channels) = (engine.policies(me), engine.mcp_servers(me), engine.channels(me));
        let secret = NewSecret { value: Some("x".into()), ..NewSecret::default() };
        let connection = NewConnection::default();
        let query = NewQuery { connection: "c".into(), sql: "select 1".into(), ..NewQuery::default() };
        let preferences = NotificationPreferences::default();
        let channel = NewChannel { name: "c".into(), ..NewChannel::default() };
        let policy = stepwell_testing::policy("tool:x", PolicyEffect::Allow);
        vec![
            ("Secrets::list", secrets.list().await.map(drop)),
            ("Secrets::get", secrets.get("S").await.map(drop)),
            ("Secrets::put", secrets.put("S", secret).await.map(drop)),
            ("Secrets::remove", secrets.remove("S").await),
            ("Secrets::rotate", secrets.rotate().await.map(drop)),
            ("Connections::list", connections.list().await.map(drop)),
            ("Connections::get", connections.get("c").await.map(drop)),
            ("Connections::put", connections.put("c", connection).await.map(drop)),
            ("Connections::remove", connections.remove("c").await),
            ("Queries::list", queries.list().await.map(drop)),
            ("Queries::get", queries.get("q").await.map(drop)),
            ("Queries::put", queries.put("q", query).await.map(drop)),
            ("Queries::remove", queries.remove("q").await),
            ("Policies::list", policies.list().await.map(drop)),
            ("Policies::get", policies.get("p").await.map(drop)),
            ("Policies::put", policies.put("p", policy).await.map(drop)),
            ("Policies::remove", policies.remove("p").await),
            ("Policies::log", policies.log("p").await.map(drop)),
            ("Policies::test", policies.test(None, Millis::from_secs(60)).await.map(drop)),
            ("McpServers::catalogue", servers.catalogue().await.map(drop)),
            ("McpServers::list", servers.list().await.map(drop)),
            ("McpServers::get", servers.get("s").await.map(drop)),
            ("McpServers::accept", servers.accept("s", &[]).await.map(drop)),
            ("McpServers::proxied", servers.proxied().await.map(drop)),
            ("McpServers::call_tool", servers.call_tool("s__t", json!({})).await.map(drop)),
            ("Channels::list", channels.list().await.map(drop)),
            ("Channels::create", channels.create(channel).await.map(drop)),
            ("Channels::remove", channels.remove("c").await),
            ("Channels::test", channels.test("c").await.map(drop)),
            ("Channels::preferences", channels.preferences().await.map(drop)),
            ("Channels::change_preferences", channels.change_preferences(preferences).await.map(drop)),
            ("Channels::notifications", channels.notifications(None, 10).await.map(drop)),
        ]
    }
}

#[tokio::test(start_paused = true)]
async fn every_command_is_refused_to_a_caller_without_rights() {
    let harness = Harness::new().await;
    let gated: Value =
        json!({"name": "w", "tasks": {"gate": {"approval": {"message": "go?"}}, "nap": {"sleep": "1h"}}});
    harness.define(&harness.admin, with(gated, "trigger", json!([{"webhook": true}]))).await;
    let run = harness.start(&harness.admin, "w").await;
    let no_rights = harness.user("nobody", &[]).await;
    let (key, _) = harness.key("admin", None).await;
    let before = harness.view(&run).await;
    let scene = Scene { harness: &harness, caller: &no_rights, run: &run };
    let mut answers = scene.runs().await;
    answers.extend(scene.steps().await);
    answers.extend(scene.workflows().await);
    answers.extend(scene.reviews().await);
    answers.extend(scene.people().await);
    answers.extend(scene.settings().await);
    let mut called: BTreeSet<String> = FREE.iter().map(|(name, _)| name.to_string()).collect();
    for (name, answer) in answers {
        assert!(matches!(answer, Err(Error::Forbidden { .. } | Error::Refused(_))), "{name}: {answer:?}");
        called.insert(name.into());
    }
    // Whether somebody else's key exists is not told.
    let keys = harness.engine.keys(&no_rights);
    for (name, answer) in [
        ("Keys::change", keys.change(&key, KeyChange::default()).await.map(drop)),
        ("Keys::revoke", keys.revoke(&key).await),
    ] {
        assert!(matches!(answer, Err(Error::Forbidden { .. } | Error::NotFound { .. })), "{name}: {answer:?}");
        called.insert(name.into());
    }
    assert_eq!(called, commands());
    assert!(keys.list().await.unwrap().iter().all(|key| key.is.user == "nobody"));
    assert_eq!(harness.view(&run).await, before);
}
