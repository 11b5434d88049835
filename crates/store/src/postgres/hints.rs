//! What processes tell each other: hints, gathered for a moment and sent over one connection, so that commits do not queue
//! up behind the database's own lock on notifications.
//!
//! Whoever cannot listen (a pooler in between, a database without notifications) looks every so often instead.

use super::args::args;
use super::readers::Readers;
use super::session::{CHANNEL, listen};
use crate::PostgresOptions;
use crate::{Hint, OrgId, RunId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

/// How long hints are gathered.
const GATHER: Duration = Duration::from_millis(5);
/// Between two looks of those who cannot listen.
const LOOK: Duration = Duration::from_millis(500);
/// After the connection broke.
const PAUSE: Duration = Duration::from_millis(500);
/// Runs in one message: it may not be long.
const MOST: usize = 200;
/// Hints that a listener may be behind.
const BEHIND: usize = 1_024;

pub struct Hints {
    pub heard: broadcast::Sender<Hint>,
    out: mpsc::UnboundedSender<Hint>,
}

impl Hints {
    /// Ends when `end` does.
    pub fn start(options: Arc<PostgresOptions>, readers: Arc<Readers>, me: i64, end: CancellationToken) -> Hints {
        let (heard, _) = broadcast::channel(BEHIND);
        let (out, gathered) = mpsc::unbounded_channel();
        let send = send(readers, gathered, me);
        tokio::spawn(end.clone().run_until_cancelled_owned(send));
        let hear = hear(options, heard.clone(), me);
        tokio::spawn(end.run_until_cancelled_owned(hear));
        Hints { heard, out }
    }

    pub fn tell(&self, hint: Hint) {
        // Nobody is there any more when the store is closed.
        let _ = self.out.send(hint);
    }
}

async fn send(readers: Arc<Readers>, mut hints: mpsc::UnboundedReceiver<Hint>, me: i64) {
    while let Some(hint) = hints.recv().await {
        let mut all = Gathered::default();
        all.add(hint);
        tokio::time::sleep(GATHER).await;
        while let Ok(hint) = hints.try_recv() {
            all.add(hint);
        }
        let texts = all.texts(me);
        let sql = format!("SELECT pg_notify(({CHANNEL}), $1)");
        for text in &texts {
            // Whoever does not hear of it finds out by looking.
            let _ = readers.tell(async |db| db.execute(&sql, args![text]).await).await;
        }
    }
}

#[derive(Default)]
struct Gathered {
    runs: BTreeSet<RunId>,
    orgs: BTreeSet<OrgId>,
    ready: bool,
}

impl Gathered {
    fn add(&mut self, hint: Hint) {
        self.runs.extend(hint.runs);
        self.orgs.extend(hint.orgs);
        self.ready |= hint.ready;
    }

    /// `me;ready;run,run;org,org`, one or more of them.
    fn texts(&self, me: i64) -> Vec<String> {
        let list =
            |numbers: &mut dyn Iterator<Item = i64>| numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let (runs, orgs): (Vec<RunId>, Vec<OrgId>) =
            (self.runs.iter().copied().collect(), self.orgs.iter().copied().collect());
        let messages = runs.len().div_ceil(MOST).max(orgs.len().div_ceil(MOST)).max(1);
        let message = |n: usize| {
            let runs = list(&mut runs.iter().skip(n * MOST).take(MOST).map(|run| run.0));
            let orgs = list(&mut orgs.iter().skip(n * MOST).take(MOST).map(|org| org.0));
            format!("{me};{};{runs};{orgs}", u8::from(self.ready))
        };
        (0..messages).map(message).collect()
    }
}

/// What another process said; `None` for what this one said itself, or what cannot be read.
fn read(text: &str, me: i64) -> Option<Hint> {
    let mut parts = text.split(';');
    if parts.next()?.parse::<i64>().ok()? == me {
        return None;
    }
    let ready = parts.next()? == "1";
    let numbers = |part: &str| part.split(',').filter_map(|number| number.parse().ok()).collect::<Vec<i64>>();
    let runs = numbers(parts.next()?).into_iter().map(RunId).collect();
    let orgs = numbers(parts.next()?).into_iter().map(OrgId).collect();
    Some(Hint { runs, orgs, ready })
}

async fn hear(options: Arc<PostgresOptions>, heard: broadcast::Sender<Hint>, me: i64) {
    let url = match (&options.listen_url, options.prepared) {
        (Some(url), _) => url.clone(),
        (None, true) => options.url.clone(),
        // A pooler per transaction has nobody who would be told.
        (None, false) => return look(&heard).await,
    };
    loop {
        match listen(&url, &options).await {
            Ok(mut messages) => {
                // What was said before is not known.
                let _ = heard.send(Hint { ready: true, ..Hint::default() });
                while let Some(text) = messages.recv().await {
                    if let Some(hint) = read(&text, me) {
                        let _ = heard.send(hint);
                    }
                }
            }
            Err(error) => tracing::debug!(?error, "no listening to the database for now"),
        }
        let _ = heard.send(Hint { ready: true, ..Hint::default() });
        tokio::time::sleep(PAUSE).await;
    }
}

async fn look(heard: &broadcast::Sender<Hint>) {
    loop {
        tokio::time::sleep(LOOK).await;
        // Nobody may be listening.
        let _ = heard.send(Hint { ready: true, ..Hint::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_read_as_it_was_gathered_and_one_s_own_is_not_heard() {
        let mut all = Gathered::default();
        all.add(Hint { runs: vec![RunId(7), RunId(9)], orgs: vec![], ready: false });
        all.add(Hint { runs: vec![RunId(7)], orgs: vec![OrgId(1)], ready: true });
        let text = &all.texts(-5)[0];
        let hint = Hint { runs: vec![RunId(7), RunId(9)], orgs: vec![OrgId(1)], ready: true };
        assert_eq!(read(text, 4), Some(hint));
        assert_eq!(read(text, -5), None);
        assert_eq!(read(&Gathered::default().texts(1)[0], 2), Some(Hint::default()));
        assert_eq!(read("hello", 1), None);
        let many = Gathered { runs: (0..450).map(RunId).collect(), ..Gathered::default() };
        let heard = many.texts(1).iter().filter_map(|text| read(text, 2)).flat_map(|hint| hint.runs).count();
        assert_eq!((many.texts(1).len(), heard), (3, 450));
    }
}
