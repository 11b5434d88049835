//! A harness for the `query` kind with connections that a test defines.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stepwell_core::event::{Failure, Outcome};
use stepwell_engine::{Connection, Connections, Error, StepCall, StepKind};
use stepwell_steps::{Config, Egress, kinds};
use stepwell_store::OrgId;
use stepwell_testing::{Cluster, Schema, step_call};

pub const ORG: OrgId = OrgId(1);

#[derive(Default)]
struct Known(Mutex<HashMap<(OrgId, String), Connection>>);

#[async_trait]
impl Connections for Known {
    async fn connection(&self, org: OrgId, name: &str) -> Result<Option<Connection>, Error> {
        Ok(self.0.lock().unwrap().get(&(org, name.to_string())).cloned())
    }
}

#[derive(Clone)]
pub struct Harness {
    kind: Arc<dyn StepKind>,
    known: Arc<Known>,
}

/// A connection that allows writing and has no limits of its own.
pub fn to(url: impl Into<String>) -> Connection {
    Connection { url: url.into(), write: true, rows: None, timeout: None, identity: [1; 32] }
}

impl Harness {
    pub fn with(egress: Egress) -> Harness {
        let known = Arc::new(Known::default());
        let connections: Arc<dyn Connections> = known.clone();
        let config = Config { egress, connections, connect_timeout: Duration::from_secs(5), ..Config::default() };
        Harness { kind: kinds(config).get("query").unwrap().clone(), known }
    }

    /// A harness with one connection, `db`.
    pub fn on(url: impl Into<String>) -> Harness {
        let harness = Harness::with(Egress { allow_private: true });
        harness.name("db", to(url));
        harness
    }

    pub fn name(&self, name: &str, connection: Connection) {
        self.name_for(ORG, name, connection);
    }

    pub fn name_for(&self, org: OrgId, name: &str, connection: Connection) {
        self.known.0.lock().unwrap().insert((org, name.into()), connection);
    }

    pub async fn run(&self, call: StepCall) -> Result<Value, Failure> {
        let outcome = tokio::time::timeout(Duration::from_secs(60), self.kind.run(call)).await;
        match outcome.expect("this takes too long") {
            Outcome::Success(reply) => Ok(Value::clone(&reply.body)),
            Outcome::Failure { failure, .. } => Err(failure),
        }
    }

    /// Runs a step on `db` with these fields.
    pub async fn step(&self, fields: Value) -> Result<Value, Failure> {
        let mut input = json!({"connection": "db"});
        input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.run(call(input)).await
    }

    pub async fn query(&self, sql: &str, params: Value) -> Result<Value, Failure> {
        self.step(json!({"sql": sql, "params": params})).await
    }

    pub async fn write(&self, sql: &str, params: Value) -> Result<Value, Failure> {
        self.step(json!({"sql": sql, "params": params, "write": true})).await
    }

    /// The only value of the only row.
    pub async fn one(&self, sql: &str, params: Value) -> Value {
        let body = self.query(sql, params).await.unwrap();
        assert_eq!(body.as_array().unwrap().len(), 1, "{body}");
        body[0].as_object().unwrap().values().next().unwrap().clone()
    }
}

pub fn call(input: Value) -> StepCall {
    StepCall { timeout: Duration::from_secs(30), ..step_call("ask", input) }
}

/// A PostgreSQL schema and a harness connected to it.
pub fn postgres() -> (Schema, Harness) {
    let schema = Cluster::shared().schema();
    let harness = Harness::on(schema.url());
    (schema, harness)
}

/// An SQLite file made by a script and a harness connected to it.
pub fn sqlite(script: &str) -> (tempfile::TempDir, Harness) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(script).unwrap();
    let harness = Harness::on(format!("sqlite:{}", path.display()));
    (directory, harness)
}

/// Both databases, each with the same table `t (id, name)` of two rows.
pub fn both() -> (Schema, tempfile::TempDir, [Harness; 2]) {
    const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'one'), (2, 'two');";
    let (schema, postgres) = postgres();
    schema.execute(TABLE);
    let (directory, sqlite) = sqlite(TABLE);
    (schema, directory, [postgres, sqlite])
}

/// Polls until the condition holds.
pub async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let begun = Instant::now();
    while !ask().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[track_caller]
pub fn check(failure: &Failure, code: &str, part: &str) {
    assert_eq!(&*failure.code, code, "{}", failure.message);
    assert!(failure.message.contains(part), "{}", failure.message);
}
