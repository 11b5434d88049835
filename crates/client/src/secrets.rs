//! Secrets. Their values are never returned.

use crate::{ATTEMPTS, Call, Client, Error, Pages, Secret};
use serde_json::{Map, Value};

impl Client {
    /// All secrets, without their values.
    pub fn secrets(&self) -> Pages<'_, Secret> {
        Pages::new(self, &["secrets"], Vec::new())
    }

    /// Creates a secret, or changes its value or the hosts that it may be sent to. What is `None` stays as it is.
    pub async fn set_secret(&self, name: &str, value: Option<&str>, hosts: Option<&[&str]>) -> Result<Secret, Error> {
        let mut sent = Map::new();
        sent.extend(value.map(|value| ("value".to_string(), Value::from(value))));
        sent.extend(hosts.map(|hosts| ("hosts".to_string(), Value::from(hosts.to_vec()))));
        self.data(Call::put(&["secrets", name]).json(sent.into()).attempts(ATTEMPTS)).await
    }

    /// Deletes a secret.
    pub async fn delete_secret(&self, name: &str) -> Result<(), Error> {
        self.execute(Call::delete(&["secrets", name])).await
    }
}
