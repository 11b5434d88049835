//! Writing changes of records, and deciding them anew when something they rest on was changed before they were written.

use crate::access::Caller;
use crate::error::Error;
use crate::records::{Kept, find, json as json_text, named};
use crate::rooms::Rooms;
use serde_json::Value;
use std::time::Duration;
use stepwell_store::{Auth, Change, NewAudit, OrgId, Record, RecordChange, Refused};

/// How often something is decided at the most.
const TRIES: u32 = 30;
/// Grows with every try, so that those who are in each other's way come apart.
const PAUSE: Duration = Duration::from_millis(2);

/// What a decision is made on: asked for before all that it looks at.
pub(super) async fn auth(rooms: &Rooms, org: OrgId) -> Result<Auth, Error> {
    Ok(Auth { org, epoch: rooms.access.epoch(org).await? })
}

/// Decides, and again as often as somebody else was quicker.
pub(super) async fn settled<T, F>(decide: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for n in 1..TRIES {
        match decide().await {
            Err(Error::Changed(_)) => tokio::time::sleep(PAUSE * n).await,
            answer => return answer,
        }
    }
    decide().await
}

/// Applies a change. What is remembered of the organisation is forgotten if rights change with it, even if whoever asked
/// does not wait for the answer.
pub(super) async fn change(rooms: &Rooms, change: Change, what: &'static str, name: &str) -> Result<(), Error> {
    let access = rooms.access.clone();
    let done = tokio::spawn(async move {
        let org = change.grants_of;
        let done = access.cluster.store.change(change).await;
        if let Some(org) = org {
            access.epoch_moved(org);
        }
        done
    });
    let done = done.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
    done.map_err(|refused| match refused {
        Refused::Taken => Error::Exists { what, name: name.to_string() },
        _ => Error::Changed(what),
    })
}

/// Replaces a record. Rights may have changed with it.
pub(super) async fn replace<T: Kept>(
    rooms: &Rooms,
    record: Record,
    is: &T,
    audit: NewAudit,
    decided: Auth,
) -> Result<(), Error> {
    let (org, id) = (record.org, record.id.clone());
    let records = vec![RecordChange::Replace(Record { body: json_text(is), ..record })];
    let done = Change { records, audit: vec![audit], grants_of: Some(org), decided: Some(decided) };
    change(rooms, done, T::KIND, &id).await
}

/// A new record with an id of this prefix, found by its name.
pub(super) fn new_named<T: Kept>(rooms: &Rooms, org: OrgId, prefix: &str, name: &str, is: &T) -> Record {
    named(rooms.cluster.ids.public(prefix, rooms.cluster.clock.now()), org, name, is)
}

/// Removes a record by its name or id.
pub(super) async fn remove<T: Kept>(rooms: &Rooms, caller: &Caller, action: &str, name: &str) -> Result<(), Error> {
    let decided = auth(rooms, caller.org).await?;
    let record = find::<T>(&*rooms.cluster.store, caller.org, name).await?;
    let audit = vec![caller.audit(rooms.cluster.clock.now(), action, name, Value::Null)];
    let records = vec![RecordChange::Remove { kind: T::KIND.into(), id: record.id }];
    let done = Change { records, audit, grants_of: Some(caller.org), decided: Some(decided) };
    change(rooms, done, T::KIND, name).await
}

/// An audit row about what the caller does to a run. The person at the machine leaves none: the run's own log says it.
pub(super) fn trail(rooms: &Rooms, caller: &Caller, action: &str, target: &str, detail: Value) -> Option<NewAudit> {
    (!caller.is_local()).then(|| caller.audit(rooms.cluster.clock.now(), action, target, detail))
}
