//! Writes changes of records, and retries a command if data it depends on has changed before the write.

use crate::access::Caller;
use crate::error::Error;
use crate::records::{Kept, find, json as json_text, named};
use crate::rooms::Rooms;
use serde_json::Value;
use std::time::Duration;
use stepwell_store::{Auth, Change, NewAudit, OrgId, Record, RecordChange, Refused};

/// Maximum number of attempts of a command.
const MAX_ATTEMPTS: u32 = 30;
/// Grows with each attempt, so that conflicting callers spread out.
const PAUSE: Duration = Duration::from_millis(2);

/// The organisation's current epoch. A command reads it before all other data: the store refuses the write if the epoch
/// has changed since.
pub(super) async fn current_auth(rooms: &Rooms, org: OrgId) -> Result<Auth, Error> {
    Ok(Auth { org, epoch: rooms.access.epoch(org).await? })
}

/// Runs a command, and repeats it if a concurrent change made its write fail.
pub(super) async fn retry_on_conflict<T, F>(command: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    for n in 1..MAX_ATTEMPTS {
        match command().await {
            Err(Error::Changed(_)) => tokio::time::sleep(PAUSE * n).await,
            answer => return answer,
        }
    }
    command().await
}

/// Applies a change. If it affects rights, the cached epoch of the organisation is dropped, even if the caller does not
/// wait for the result.
pub(super) async fn change(rooms: &Rooms, change: Change, what: &'static str, name: &str) -> Result<(), Error> {
    let access = rooms.access.clone();
    let written = tokio::spawn(async move {
        let org = change.grants_of;
        let written = access.cluster.store.change(change).await;
        if let Some(org) = org {
            access.epoch_moved(org);
        }
        written
    });
    let written = written.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
    written.map_err(|refused| match refused {
        Refused::Taken => Error::Exists { what, name: name.to_string() },
        _ => Error::Changed(what),
    })
}

/// Replaces a record, in a change that may affect rights.
pub(super) async fn replace<T: Kept>(
    rooms: &Rooms,
    record: Record,
    value: &T,
    audit: NewAudit,
    decided: Auth,
) -> Result<(), Error> {
    let (org, id) = (record.org, record.id.clone());
    let records = vec![RecordChange::Replace(Record { body: json_text(value), ..record })];
    let update = Change { records, audit: vec![audit], grants_of: Some(org), decided: Some(decided) };
    change(rooms, update, T::KIND, &id).await
}

/// A new record with an id of this prefix, which can be found by its name.
pub(super) fn new_named<T: Kept>(rooms: &Rooms, org: OrgId, prefix: &str, name: &str, value: &T) -> Record {
    named(rooms.cluster.ids.public(prefix, rooms.cluster.clock.now()), org, name, value)
}

/// Removes a record by its name or id.
pub(super) async fn remove<T: Kept>(rooms: &Rooms, caller: &Caller, action: &str, name: &str) -> Result<(), Error> {
    let decided = current_auth(rooms, caller.org).await?;
    let record = find::<T>(&*rooms.cluster.store, caller.org, name).await?;
    let audit = vec![caller.audit(rooms.cluster.clock.now(), action, name, Value::Null)];
    let records = vec![RecordChange::Remove { kind: T::KIND.into(), id: record.id }];
    let update = Change { records, audit, grants_of: Some(caller.org), decided: Some(decided) };
    change(rooms, update, T::KIND, name).await
}

/// An audit row for an action on a run. Actions of the local operator need none: the run's own log has them.
pub(super) fn run_audit(rooms: &Rooms, caller: &Caller, action: &str, target: &str, detail: Value) -> Option<NewAudit> {
    (!caller.is_local()).then(|| caller.audit(rooms.cluster.clock.now(), action, target, detail))
}
