//! A schema per test, and SQL from any thread of a test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_postgres::{Error, NoTls, SimpleQueryMessage};

/// An empty schema; it is dropped with this.
pub struct Schema {
    name: String,
    server: String,
    url: String,
}

impl Schema {
    pub(crate) fn new(server: &str) -> Schema {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Other processes may use the same server, now or later.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let name = format!("t{}_{moment}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        execute(server, &format!("CREATE SCHEMA {name}")).unwrap();
        let joint = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{joint}options=-csearch_path%3D{name}");
        Schema { name, server: server.into(), url }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of the database, so that names without a schema are looked for in this one.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs statements in it.
    pub fn execute(&self, sql: &str) {
        execute(&self.url, sql).unwrap();
    }

    /// What statements say: the rows, their columns one after the other, and how many rows were changed.
    pub(crate) fn ask(&self, sql: &str) -> (Vec<String>, u64) {
        let (mut rows, mut changed) = (Vec::new(), 0);
        for message in run(&self.url, sql).unwrap() {
            match message {
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).filter_map(|column| row.get(column)).collect::<Vec<_>>().join(" "));
                }
                SimpleQueryMessage::CommandComplete(count) => changed = count,
                _ => {}
            }
        }
        (rows, changed)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // A user of it, such as a process that is being killed, is not waited for long.
        let _ = execute(&self.server, &format!("SET lock_timeout = '5s'; DROP SCHEMA {} CASCADE", self.name));
    }
}

/// Runs statements on a connection of their own. Also good inside of a runtime, which it keeps waiting.
pub fn execute(url: &str, sql: &str) -> Result<(), Error> {
    run(url, sql).map(|_| ())
}

fn run(url: &str, sql: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            let connection = tokio::spawn(connection);
            let done = client.simple_query(sql).await;
            drop(client);
            let _ = connection.await;
            done
        })
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}
