//! Records: everything kept beside runs (users, keys, policies, schedules, …) is a JSON body under a kind, an id and a
//! key. These helpers read, name and list them; what a record means belongs to its room.

use crate::error::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_store::{OrgId, Record, RecordChange, RecordFilter, Store};

/// Records of one kind that an organisation may have.
pub const MAX_RECORDS: u32 = 10_000;

/// A type that is stored as the body of a record.
pub trait Kept: Serialize + DeserializeOwned {
    const KIND: &'static str;
}

/// A record's body, with the id that the API shows.
#[derive(Clone, PartialEq, Debug)]
pub struct With<T> {
    pub id: String,
    pub is: T,
}

/// Serialises what is stored.
pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("stored types are plain structs with text keys, which always serialise")
}

pub fn body<T: Kept>(record: &Record) -> Result<T, Error> {
    serde_json::from_str(&record.body)
        .map_err(|error| Error::Broken(format!("the {} {} cannot be read: {error}", record.kind, record.id)))
}

pub fn read<T: Kept>(record: &Record) -> Result<With<T>, Error> {
    Ok(With { id: record.id.clone(), is: body(record)? })
}

/// The key of a record whose name is unique within its organisation.
pub fn name_key(org: OrgId, name: &str) -> String {
    format!("{}/{name}", org.0)
}

/// A new record that is found by its name.
pub fn named<T: Kept>(id: String, org: OrgId, name: &str, is: &T) -> Record {
    Record { kind: T::KIND.into(), id, org, key: name_key(org, name), due: None, body: json(is), version: 0 }
}

/// Finds a record by its name.
pub async fn by_name<T: Kept>(store: &dyn Store, org: OrgId, name: &str) -> Result<Option<Record>, Error> {
    Ok(store.record_with_key(T::KIND, &name_key(org, name)).await?)
}

/// Finds a record of the organisation by its id or its name.
pub async fn find<T: Kept>(store: &dyn Store, org: OrgId, name: &str) -> Result<Record, Error> {
    let by_id = store.record(T::KIND, name).await?.filter(|record| record.org == org);
    let found = match by_id {
        None => by_name::<T>(store, org, name).await?,
        found => found,
    };
    found.ok_or_else(|| Error::NotFound { what: T::KIND, name: name.to_string() })
}

/// Lists the organisation's records of a kind.
pub async fn list<T: Kept>(store: &dyn Store, org: OrgId) -> Result<Vec<With<T>>, Error> {
    let (kind, prefix) = (T::KIND.into(), String::new());
    let filter = RecordFilter { kind, org: Some(org), prefix, after: None, limit: MAX_RECORDS };
    store.records(filter).await?.iter().map(read).collect()
}

/// A replacement for the record that was read, or a new one; with the record's id.
pub fn put<T: Kept>(before: Option<Record>, is: &T, new: impl FnOnce() -> Record) -> (String, RecordChange) {
    match before {
        Some(before) => (before.id.clone(), RecordChange::Replace(Record { body: json(is), ..before })),
        None => {
            let record = new();
            (record.id.clone(), RecordChange::Create(record))
        }
    }
}
