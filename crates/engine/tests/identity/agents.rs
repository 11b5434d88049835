//! Agents' keys: none can change the rules for its own calls, whatever its grants.

use crate::harness::{Harness, failure, list};
use serde_json::json;
use stepwell_engine::commands::{
    AuditQuery, KeyChange, NewConnection, NewKey, NewQuery, NewSecret, NewUser, NotificationPreferences, UserChange,
};
use stepwell_engine::{Caller, Error, PolicyEffect as Effect, Subscription};
use stepwell_store::OrgId;
use stepwell_testing::policy;

/// The widest keys that an agent can have.
async fn agents(harness: &Harness) -> Vec<Caller> {
    let mut agents = Vec::new();
    for grants in [None, Some(list(&["admin"])), Some(list(&["admin", "operator", "workflow.approve"]))] {
        let new = NewKey { name: "agent".into(), agent: true, grants, ..NewKey::default() };
        agents.push(harness.with_key(&harness.new_key(new).await.1).await);
    }
    agents
}

#[tokio::test(start_paused = true)]
async fn an_agent_changes_no_policy_right_secret_plan_or_channel_whatever_its_grants() {
    let harness = Harness::new().await;
    let engine = &harness.engine;
    engine.policies(&harness.admin).put("money", policy("tool:pay*", Effect::RequireApproval)).await.unwrap();
    let (own, _) = harness.key("admin", None).await;
    let user = NewUser { name: "eve".into(), roles: list(&["admin"]), grants: vec![] };
    let more = UserChange { grants: Some(list(&["admin", "workflow.approve"])), ..UserChange::default() };
    let query = NewQuery { connection: "shop".into(), sql: "select 1".into(), ..NewQuery::default() };
    let muted = NotificationPreferences { browser: Some(vec![]), ..NotificationPreferences::default() };
    let before = rules(&harness).await;
    for agent in agents(&harness).await {
        let key = |agent| NewKey { name: "k".into(), agent, ..NewKey::default() };
        let secret = NewSecret { value: Some("x".into()), hosts: None };
        let plan = Subscription { plan: None, limits: None };
        for (what, answer) in [
            ("relax", engine.policies(&agent).put("money", policy("tool:pay*", Effect::Allow)).await.map(drop)),
            ("tighten", engine.policies(&agent).put("more", policy("tool:*", Effect::Deny)).await.map(drop)),
            ("remove", engine.policies(&agent).remove("money").await),
            ("key", engine.keys(&agent).create(key(false)).await.map(drop)),
            ("agent's key", engine.keys(&agent).create(key(true)).await.map(drop)),
            ("pause", engine.keys(&agent).change(&own, KeyChange::default()).await.map(drop)),
            ("revoke", engine.keys(&agent).revoke(&own).await),
            ("user", engine.users(&agent).create(user.clone()).await.map(drop)),
            ("grants", engine.users(&agent).change("admin", more.clone()).await.map(drop)),
            ("disable", engine.users(&agent).disable("admin").await),
            ("link", engine.users(&agent).sign_in_link(None).await.map(drop)),
            ("link for", engine.users(&agent).sign_in_link(Some("admin")).await.map(drop)),
            ("role", engine.roles(&agent).put("approver", list(&["admin"])).await.map(drop)),
            ("secret", engine.secrets(&agent).put("KEY", secret).await.map(drop)),
            ("secret gone", engine.secrets(&agent).remove("KEY").await),
            ("rotate", engine.secrets(&agent).rotate().await.map(drop)),
            ("connection", engine.connections(&agent).put("shop", NewConnection::default()).await.map(drop)),
            ("query", engine.queries(&agent).put("all", query.clone()).await.map(drop)),
            ("tools", engine.mcp_servers(&agent).accept("kb", &[]).await.map(drop)),
            ("muted", engine.channels(&agent).change_preferences(muted.clone()).await.map(drop)),
            ("plan", engine.organisations(&agent).change_plan(OrgId(1), plan).await.map(drop)),
            ("organisation", engine.organisations(&agent).create("another", None).await.map(drop)),
            ("trail", engine.audit(&agent).list(AuditQuery::default()).await.map(drop)),
        ] {
            // The key that lists only `admin` does not have `operator` at all.
            let refused = matches!(answer, Err(Error::Refused(_) | Error::Forbidden { right: "operator", .. }));
            assert!(refused, "{what}: {answer:?}");
        }
    }
    assert_eq!(rules(&harness).await, before);
}

/// What an agent must not change.
async fn rules(harness: &Harness) -> String {
    let (engine, admin) = (&harness.engine, &harness.admin);
    format!(
        "{:?} {:?} {:?}",
        engine.policies(admin).list().await.unwrap(),
        engine.users(admin).list().await.unwrap(),
        engine.roles(admin).list().await.unwrap(),
    )
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_with_admin_starts_is_held_by_the_policy() {
    let harness = Harness::new().await;
    harness.engine.policies(&harness.admin).put("no", policy("tool:ok", Effect::Deny)).await.unwrap();
    for agent in agents(&harness).await {
        harness.define(&agent, json!({"name": "w", "tasks": {"a": {"tool": "ok"}}})).await;
        let run = harness.start(&agent, "w").await;
        let view = harness.ended(&run).await;
        assert_eq!(failure(&view).as_deref(), Some("denied_by_policy"), "{view:?}");
    }
}
