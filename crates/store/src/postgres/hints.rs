//! Hints between processes: merged for a moment and sent over one connection, so that commits do not queue up behind
//! the database's internal lock on notifications.
//!
//! A process that cannot listen (because of a pooler, or a database without notifications) polls instead.

use super::args::args;
use super::hosts::Database;
use super::readers::Readers;
use super::session::{CHANNEL, listen};
use crate::{Error, Hint, OrgId, RunId, Supervisor};
use futures_util::FutureExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

/// How long hints are collected before they are sent.
const MERGE_WINDOW: Duration = Duration::from_millis(5);
/// The polling interval of a process that cannot listen.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The delay before reconnecting.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// The maximum number of ids per message: PostgreSQL limits the payload size.
const MAX_IDS: usize = 200;
/// The number of hints buffered for a slow subscriber.
const CHANNEL_CAPACITY: usize = 1_024;

pub struct Hints {
    pub heard: broadcast::Sender<Hint>,
    out: mpsc::UnboundedSender<Hint>,
}

impl Hints {
    /// Starts the background tasks, which stop when `end` is cancelled.
    pub fn start(readers: Arc<Readers>, me: i64, supervisor: &Supervisor, end: CancellationToken) -> Hints {
        let (heard, _) = broadcast::channel(CHANNEL_CAPACITY);
        let (out, gathered) = mpsc::unbounded_channel();
        let (database, gathered) = (readers.database(), Arc::new(Mutex::new(gathered)));
        let (ended, receivers) = (end.clone(), heard.clone());
        supervisor.spawn("sent hints", move || {
            let send = send(readers.clone(), gathered.clone(), me);
            ended.clone().run_until_cancelled_owned(send).map(drop)
        });
        supervisor.spawn("received hints", move || {
            let receive = receive(database.clone(), receivers.clone(), me);
            end.clone().run_until_cancelled_owned(receive).map(drop)
        });
        Hints { heard, out }
    }

    pub fn tell(&self, hint: Hint) {
        // Fails only when the store is being closed.
        let _ = self.out.send(hint);
    }
}

async fn send(readers: Arc<Readers>, hints: Arc<Mutex<mpsc::UnboundedReceiver<Hint>>>, me: i64) {
    let mut hints = hints.lock().await;
    while let Some(hint) = hints.recv().await {
        let mut all = Merged::default();
        all.add(hint);
        tokio::time::sleep(MERGE_WINDOW).await;
        while let Ok(hint) = hints.try_recv() {
            all.add(hint);
        }
        let messages = all.messages(me);
        let sql = format!("SELECT pg_notify(({CHANNEL}), $1)");
        for text in &messages {
            // A process that misses the hint finds out when it polls.
            let _ = readers.once(async |db| db.execute(&sql, args![text]).await).await;
        }
    }
}

#[derive(Default)]
struct Merged {
    runs: BTreeSet<RunId>,
    orgs: BTreeSet<OrgId>,
    ready: bool,
    freed: BTreeSet<OrgId>,
}

impl Merged {
    fn add(&mut self, hint: Hint) {
        self.runs.extend(hint.runs);
        self.orgs.extend(hint.orgs);
        self.ready |= hint.ready;
        self.freed.extend(hint.freed);
    }

    /// The messages to send: `me;ready;run,run;org,org;freed,freed`.
    fn messages(&self, me: i64) -> Vec<String> {
        let runs: Vec<i64> = self.runs.iter().map(|run| run.0).collect();
        let orgs: Vec<i64> = self.orgs.iter().map(|org| org.0).collect();
        let freed: Vec<i64> = self.freed.iter().map(|org| org.0).collect();
        let messages = [&runs, &orgs, &freed].map(|all| all.len().div_ceil(MAX_IDS)).into_iter().max();
        let part = |all: &[i64], n: usize| {
            let ids = all.iter().skip(n * MAX_IDS).take(MAX_IDS);
            ids.map(i64::to_string).collect::<Vec<_>>().join(",")
        };
        let message = |n: usize| {
            let ready = u8::from(self.ready);
            format!("{me};{ready};{};{};{}", part(&runs, n), part(&orgs, n), part(&freed, n))
        };
        (0..messages.unwrap_or_default().max(1)).map(message).collect()
    }
}

/// Parses a message of another process; `None` for this process's own messages and for malformed ones.
fn read(text: &str, me: i64) -> Option<Hint> {
    let mut parts = text.split(';');
    if parts.next()?.parse::<i64>().ok()? == me {
        return None;
    }
    let ready = parts.next()? == "1";
    let numbers = |part: &str| part.split(',').filter_map(|number| number.parse().ok()).collect::<Vec<i64>>();
    let runs = numbers(parts.next()?).into_iter().map(RunId).collect();
    let orgs = numbers(parts.next()?).into_iter().map(OrgId).collect();
    // Versions before this field do not send it.
    let freed = parts.next().map(numbers).unwrap_or_default().into_iter().map(OrgId).collect();
    Some(Hint { runs, orgs, ready, freed })
}

async fn receive(database: Arc<Database>, heard: broadcast::Sender<Hint>, me: i64) {
    if database.listen_url.is_none() && !database.prepared {
        // Behind a pooler in transaction mode, LISTEN does not work.
        return poll(&heard).await;
    }
    loop {
        match listen(&database).await {
            Ok(mut messages) => {
                // Earlier hints were missed.
                let _ = heard.send(Hint { ready: true, ..Hint::default() });
                while let Some(text) = messages.recv().await {
                    if let Some(hint) = read(&text, me) {
                        let _ = heard.send(hint);
                    }
                }
            }
            Err(failed) => tracing::debug!(error = %Error::from(failed), "cannot listen to the database, will retry"),
        }
        let _ = heard.send(Hint { ready: true, ..Hint::default() });
        tokio::time::sleep(RECONNECT_DELAY).await;
    }
}

async fn poll(heard: &broadcast::Sender<Hint>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        // There may be no subscriber.
        let _ = heard.send(Hint { ready: true, ..Hint::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_hints_are_parsed_by_other_processes_only() {
        let mut all = Merged::default();
        all.add(Hint { runs: vec![RunId(7), RunId(9)], freed: vec![OrgId(3)], ..Hint::default() });
        all.add(Hint { runs: vec![RunId(7)], orgs: vec![OrgId(1)], ready: true, freed: vec![OrgId(2), OrgId(3)] });
        let text = &all.messages(-5)[0];
        let freed = vec![OrgId(2), OrgId(3)];
        let hint = Hint { runs: vec![RunId(7), RunId(9)], orgs: vec![OrgId(1)], ready: true, freed };
        assert_eq!(read(text, 4), Some(hint));
        assert_eq!(read(text, -5), None);
        assert_eq!(read(&Merged::default().messages(1)[0], 2), Some(Hint::default()));
        assert_eq!(read("hello", 1), None);
        assert_eq!(read("1;1;;", 2), Some(Hint { ready: true, ..Hint::default() }), "an older version");
        let many = Merged { runs: (0..450).map(RunId).collect(), ..Merged::default() };
        let heard = many.messages(1).iter().filter_map(|text| read(text, 2)).flat_map(|hint| hint.runs).count();
        assert_eq!((many.messages(1).len(), heard), (3, 450));
    }
}
