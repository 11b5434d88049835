//! Runs that nobody asks for in person: those of schedules and addresses, and children of other runs.

use super::{Beginning, KEY_LIFE, MAX_CHILD_DEPTH, Started, begin};
use crate::children::{self, Parenthood};
use crate::commands::labels::labels;
use crate::commands::{Caller, Right};
use crate::engine::Inner;
use crate::error::Error;
use crate::people;
use crate::rights::Actor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use stepwell_store::{OrgId, Parent, UniqueKey};

/// A run to be started in someone's name who is not there to ask.
pub(crate) struct Begin<'a> {
    /// Its `wf_…`.
    pub workflow: &'a str,
    pub input: Value,
    pub headers: Option<Value>,
    /// Of the key: at most one run is started for each.
    pub scope: String,
    pub key: Option<String>,
    pub how: &'static str,
}

/// Starts a run as someone, with the rights they have now.
pub(crate) async fn begin_as(
    inner: &Arc<Inner>,
    org: OrgId,
    actor: &Actor,
    asked: Begin<'_>,
) -> Result<Started, Error> {
    let epoch = inner.epoch(org).await?;
    let compiled = inner.definitions.newest(inner, org, asked.workflow).await?;
    let caller = if actor.is_local() {
        Caller::local(compiled.row.by.as_str())
    } else {
        let gone = || Error::Refused(format!("the user {:?} is gone or disabled", actor.user));
        let grants = people::grants(inner, org, actor).await?.ok_or_else(gone)?;
        let caller = Caller::new(org, actor.user.as_str(), (*grants).clone());
        actor.key.iter().fold(caller, |caller, key| caller.with_key(key.as_str()))
    };
    caller.check(Right::Run)?;
    let now = inner.clock.now();
    let unique = asked.key.map(|key| UniqueKey {
        scope: asked.scope,
        key,
        digest: String::new(),
        expires: Some(now + KEY_LIFE),
    });
    let detail = json!({"workflow": compiled.row.name, "by": asked.how});
    let beginning = Beginning {
        epoch,
        labels: labels(&compiled, BTreeMap::new())?,
        compiled,
        input: Arc::new(asked.input),
        headers: asked.headers.map(Arc::new),
        by: caller.name.clone(),
        acts_as: actor.to_string(),
        unique,
        parent: None,
        test: false,
        most_open: None,
        audit: (!actor.is_local()).then(|| caller.audit(now, "run.start", "", detail)),
    };
    begin(inner, beginning, &mut None).await
}

/// A child to be started for a step of its parent.
pub(crate) struct ChildOf<'a> {
    pub parent: &'a Parenthood,
    pub path: &'a str,
    pub attempt: u32,
    pub workflow: &'a str,
    pub input: Arc<Value>,
}

/// Starts a child once, however often it is asked for.
pub(crate) async fn start_child(inner: &Arc<Inner>, child: ChildOf<'_>) -> Result<(), Error> {
    let ChildOf { parent, path, attempt, workflow, input } = child;
    let depth = parent.depth + 1;
    if depth > MAX_CHILD_DEPTH {
        return Err(Error::Refused(format!("child runs are nested more than {MAX_CHILD_DEPTH} deep")));
    }
    let epoch = inner.epoch(parent.org).await?;
    let compiled = inner.definitions.newest(inner, parent.org, workflow).await?;
    let key = children::unique(parent.id, path, attempt);
    let unique = UniqueKey { scope: children::SCOPE.into(), key, digest: String::new(), expires: None };
    let labels = labels(&compiled, BTreeMap::new())?;
    let beginning = Beginning {
        epoch,
        compiled,
        input,
        headers: None,
        by: parent.by.clone(),
        acts_as: parent.acts_as.clone(),
        labels,
        unique: Some(unique),
        parent: Some(Parent { run: parent.id, path: path.to_string(), attempt, depth }),
        test: parent.test,
        most_open: None,
        audit: None,
    };
    begin(inner, beginning, &mut None).await.map(|_| ())
}
