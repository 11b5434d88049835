//! What a review shows: the difference from the accepted version, what is new in it, and what the simulation and the
//! policies say. One digest covers all of it.

use super::rehearsal::{Rehearsal, rehearse};
use super::{Reviews, is_open};
use crate::error::Error;
use crate::execute::{Effect, Mode, subjects};
use crate::secrets::host_of;
use crate::workflows::{Compiled, Review, ReviewState, read_definition, secrets_of};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stepwell_core::approval::digest;
use stepwell_core::definition::Definition;
use stepwell_core::diff::unified;
use stepwell_core::graph::{Call, Kind};
use stepwell_core::outline::outline;

/// Stands for what is only known in a run.
const COMPUTED: &str = "(computed)";

#[derive(Clone, Debug)]
pub struct ReviewView {
    pub id: String,
    pub review: Review,
    pub state: ReviewState,
    /// Whether a person can answer it now.
    pub is_open: bool,
    /// What the agent wrote.
    pub text: String,
    /// The accepted version that it is compared with.
    pub base: Option<u32>,
    pub before: Option<String>,
    /// A unified diff of the two texts.
    pub diff: String,
    pub steps: StepChanges,
    /// What the accepted version does not use.
    pub new: Uses,
    /// What happens if calls succeed with made-up results.
    pub simulation: Rehearsal,
    /// Which policies apply to which steps, as far as that is known before a run.
    pub policies: Vec<String>,
    /// An answer must carry it.
    pub digest: String,
}

#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct StepChanges {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

/// What a definition reaches.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Uses {
    pub tools: BTreeSet<String>,
    pub hosts: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
    pub connections: BTreeSet<String>,
    pub workflows: BTreeSet<String>,
}

impl Reviews<'_> {
    pub(super) async fn show(&self, id: &str, review: Review) -> Result<ReviewView, Error> {
        let current = self.rooms.cluster.store.find_definition(self.caller.org, &review.workflow).await?;
        let is_open = is_open(&review, current.as_ref().map(|row| row.version));
        let (text, base) = self.compared(&review).await?;
        let definition = read_definition(&text)
            .map_err(|faults| Error::Broken(format!("the definition of the review {id} cannot be read: {faults}")))?;
        let was = base.as_ref().map(|base| &base.definition);
        let (uses, used) = (Uses::of(&definition), was.map(Uses::of).unwrap_or_default());
        let before = base.as_ref().map(|base| base.row.source.clone());
        let diff = unified(before.as_deref().unwrap_or_default(), &text);
        let (steps, new) = (StepChanges::between(was, &definition), uses.without(&used));
        let policies = self.policies_on(&definition).await?;
        let definition = Arc::new(definition);
        let simulation = tokio::task::spawn_blocking(move || rehearse(&definition));
        let simulation = simulation.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))?;
        let base = base.map(|base| base.row.version);
        let digest = digest(&json!({
            "review": id, "text": text, "base": base, "before": before, "diff": diff, "steps": steps, "new": new,
            "simulation": simulation, "policies": policies,
        }));
        let (id, state) = (id.to_string(), review.state());
        Ok(ReviewView {
            id,
            review,
            state,
            is_open,
            text,
            base,
            before,
            diff,
            steps,
            new,
            simulation,
            policies,
            digest,
        })
    }

    /// The text under review, and the accepted version it is compared with: the newest one before it.
    async fn compared(&self, review: &Review) -> Result<(String, Option<Arc<Compiled>>), Error> {
        let (store, workflows) = (&self.rooms.cluster.store, &self.rooms.workflows);
        let (mut text, mut base) = (review.text.clone(), None);
        for row in store.versions(self.caller.org, &review.workflow).await? {
            match review.version {
                Some(version) if row.version == version => text = Some(row.source),
                Some(version) if row.version > version => {}
                _ if base.is_none() && workflows.reviewed(&row).await?.is_accepted() => {
                    base = Some(workflows.version(row.id).await?);
                }
                _ => {}
            }
        }
        let gone = || Error::NotFound { what: "version", name: review.name.clone() };
        Ok((text.ok_or_else(gone)?, base))
    }

    pub(in crate::commands) async fn policies_on(&self, definition: &Definition) -> Result<Vec<String>, Error> {
        let policies = self.rooms.executor.policies(self.caller.org).await?;
        let mut found = Vec::new();
        for step in &definition.graph.steps {
            let Kind::Call { call, input } = &step.def.kind else { continue };
            for policy in policies.on(&subjects(call.name(), &input.known())) {
                let effect = match policy.effect {
                    _ if policy.mode == Mode::Log => continue,
                    Effect::Deny => "denies it",
                    Effect::RequireApproval => "requires approval",
                    Effect::Allow => continue,
                };
                let when = policy.when.as_deref().map(|when| format!(" when {when}")).unwrap_or_default();
                found.push(format!("{}: the policy {} {effect}{when}", step.def.name, policy.name));
            }
        }
        Ok(found)
    }
}

impl StepChanges {
    fn between(before: Option<&Definition>, after: &Definition) -> StepChanges {
        let (before, after) = (before.map(written).unwrap_or_default(), written(after));
        let missing_in = |one: &BTreeMap<String, Arc<Value>>, other: &BTreeMap<String, Arc<Value>>| {
            one.keys().filter(|path| !other.contains_key(*path)).cloned().collect()
        };
        let changed = after.iter().filter(|(path, step)| before.get(*path).is_some_and(|was| was != *step));
        StepChanges {
            added: missing_in(&after, &before),
            changed: changed.map(|(path, _)| path.clone()).collect(),
            removed: missing_in(&before, &after),
        }
    }
}

/// The steps as written, by their paths.
fn written(definition: &Definition) -> BTreeMap<String, Arc<Value>> {
    let paths = outline(definition).nodes.into_iter().map(|node| node.path);
    paths.zip(definition.graph.steps.iter().map(|step| step.def.written.clone())).collect()
}

impl Uses {
    fn of(definition: &Definition) -> Uses {
        let mut uses = Uses::default();
        uses.hosts.extend(definition.allow_hosts.iter().cloned());
        uses.secrets.extend(secrets_of(definition).iter().map(|name| name.to_string()));
        for step in &definition.graph.steps {
            match &step.def.kind {
                Kind::Call { call, input } => uses.add_call(*call, &input.known(), &step.def.written),
                Kind::Child { workflow, .. } => drop(uses.workflows.insert(workflow.to_string())),
                _ => {}
            }
        }
        uses
    }

    fn add_call(&mut self, call: Call, known: &Value, written: &Value) {
        let named = |field: &str| known.get(field).and_then(Value::as_str).unwrap_or(COMPUTED).to_string();
        let tool = if call == Call::Tool { named("tool") } else { call.name().to_string() };
        let before = self.hosts.len();
        hosts_in(written, &mut self.hosts);
        if self.hosts.len() == before && (call == Call::Http || tool == "http_request") && !has_url(written) {
            self.hosts.insert(COMPUTED.into());
        }
        self.tools.insert(tool);
        if call == Call::Query {
            let saved = known.get("saved").and_then(Value::as_str).map(|saved| format!("saved query {saved}"));
            self.connections.insert(saved.unwrap_or_else(|| named("connection")));
        }
    }

    /// Without what the other one uses as well.
    fn without(self, other: &Uses) -> Uses {
        let less = |mine: BTreeSet<String>, theirs: &BTreeSet<String>| mine.difference(theirs).cloned().collect();
        Uses {
            tools: less(self.tools, &other.tools),
            hosts: less(self.hosts, &other.hosts),
            secrets: less(self.secrets, &other.secrets),
            connections: less(self.connections, &other.connections),
            workflows: less(self.workflows, &other.workflows),
        }
    }
}

/// The hosts of all URLs in a step, also in its code. A host that a template makes is computed.
fn hosts_in(written: &Value, hosts: &mut BTreeSet<String>) {
    match written {
        Value::String(text) => hosts.extend(urls(text).filter_map(|url| {
            let authority = url.split("://").nth(1)?.split(['/', '?', '#']).next()?;
            if authority.contains("{{") || authority.contains("${") { Some(COMPUTED.into()) } else { host_of(url) }
        })),
        Value::Array(list) => list.iter().for_each(|value| hosts_in(value, hosts)),
        Value::Object(fields) => fields.values().for_each(|value| hosts_in(value, hosts)),
        _ => {}
    }
}

fn has_url(written: &Value) -> bool {
    let mut hosts = BTreeSet::new();
    hosts_in(written, &mut hosts);
    !hosts.is_empty()
}

/// The URLs in a text, each to its end or the next quote or space.
fn urls(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["http://", "https://"].into_iter().flat_map(|scheme| text.match_indices(scheme));
    starts.map(|(start, _)| {
        let url = &text[start..];
        &url[..url.find(|c: char| c.is_whitespace() || "\"'`<>)".contains(c)).unwrap_or(url.len())]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: Value) -> Definition {
        read_definition(&text.to_string()).unwrap_or_else(|faults| panic!("{faults}"))
    }

    #[test]
    fn what_a_newer_text_changes_and_reaches_is_listed() {
        let was = read(json!({"name": "w", "tasks": {
            "get": {"url": "https://a.example.com/x", "method": "GET"},
            "log": {"tool": "log", "args": {"message": "x"}},
            "old": {"sleep": 1},
        }}));
        let is = read(json!({"name": "w", "tasks": {
            "get": {"url": "https://b.example.com/x?k={{secrets.K}}", "method": "GET"},
            "log": {"tool": "log", "args": {"message": "x"}},
            "pay": {"tool": "bank__pay", "args": {"to": "https://{{input.host}}/"}},
            "code": {"javascript": "return await fetch('https://c.example.com/')"},
            "rows": {"query": {"connection": "crm", "sql": "select 1"}},
            "sub": {"workflow": "other"},
        }}));
        let steps = StepChanges::between(Some(&was), &is);
        assert_eq!(steps.added, ["code", "pay", "rows", "sub"]);
        assert_eq!((steps.changed, steps.removed), (vec!["get".to_string()], vec!["old".to_string()]));
        let new = json!(Uses::of(&is).without(&Uses::of(&was)));
        let expected = json!({"tools": ["bank__pay", "javascript", "query"], "secrets": ["K"], "connections": ["crm"],
            "hosts": [COMPUTED, "b.example.com", "c.example.com"], "workflows": ["other"]});
        assert_eq!(new, expected);
    }
}
