//! One writing connection at work: it has a row of `writers`, numbers what it commits, and keeps the audit trail's hashes.

use super::args::args;
use super::batch::{self, Fate, Slot};
use super::session::{Answer, Failed, Purpose, Session};
use super::writer::{Task, Written};
use super::{alone, rows};
use crate::PostgresOptions;
use crate::{Commit, Error, NewAudit, OrgId, Position, Refused, audit_hash};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::error::SqlState;

/// A transaction whose process stands still must not hold others up for long.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '10s';
                     SET LOCAL lock_timeout = '10s'";
/// How long a writer's row stays its own without a sign of it, in seconds.
const LEASE: f64 = 60.0;

pub struct Desk {
    options: Arc<PostgresOptions>,
    holder: i64,
    open: Option<Open>,
}

/// What goes with a connection.
struct Open {
    db: Arc<Session>,
    slot: Slot,
    /// The last hash of each organisation's audit trail, as this writer's row goes on with it.
    chain: HashMap<OrgId, [u8; 32]>,
}

impl Desk {
    pub fn new(options: Arc<PostgresOptions>, holder: i64) -> Desk {
        Desk { options, holder, open: None }
    }

    async fn open(&mut self) -> Answer<&mut Open> {
        if self.open.as_ref().is_none_or(|open| open.db.is_closed()) {
            self.open = None;
            let db = Arc::new(Session::connect(&self.options, Purpose::Writing).await?);
            let slot = take_slot(&db, self.holder).await?;
            self.open = Some(Open { db, slot, chain: HashMap::new() });
        }
        Ok(self.open.as_mut().expect("it was opened just now"))
    }

    /// What is in doubt is forgotten: the next one connects again and reads what it must know. A statement that only did not
    /// fit the tables leaves nothing in doubt; after everything else the connection may be in the middle of something.
    fn doubt<T>(&mut self, answer: Answer<T>) -> Answer<T> {
        let sound = |failed: &Failed| matches!(failed, Failed::Said(_)) && failed.misfit();
        if answer.as_ref().is_err_and(|failed| !sound(failed)) {
            self.open = None;
        }
        answer
    }

    /// What became of commits that can go together, in their order. If that fails each is tried by itself.
    pub async fn commit(&mut self, commits: &[Commit]) -> Vec<Written> {
        let group: Vec<&Commit> = commits.iter().collect();
        let failed = match self.together(&group).await {
            Ok(answers) => return answers.into_iter().map(Ok).collect(),
            Err(failed) => failed,
        };
        if !failed.misfit() || commits.len() == 1 {
            let first = single(Err(failed));
            let rest = (1..commits.len()).map(|_| Err(Error::Unavailable("the database did not answer".into())));
            return std::iter::once(first).chain(rest).collect();
        }
        let mut written: Vec<Written> = Vec::with_capacity(commits.len());
        for commit in commits {
            // When the database has gone nobody is kept waiting for it.
            let gone = matches!(written.last(), Some(Err(Error::Unavailable(_))));
            written.push(match gone {
                false => single(self.together(&[commit]).await),
                true => Err(Error::Unavailable("the database did not answer".into())),
            });
        }
        written
    }

    /// What became of one that others have a say in.
    pub async fn commit_alone(&mut self, commit: &Commit) -> Written {
        let answer = self.try_alone(commit).await;
        single(self.doubt(answer).map(|answer| vec![answer]))
    }

    async fn together(&mut self, commits: &[&Commit]) -> Answer<Vec<Result<Position, Refused>>> {
        let answer = self.try_together(commits).await;
        self.doubt(answer)
    }

    async fn try_together(&mut self, commits: &[&Commit]) -> Answer<Vec<Result<Position, Refused>>> {
        let holder = self.holder;
        loop {
            let open = self.open().await?;
            let audited = commits.iter().any(|commit| !commit.audit.is_empty());
            let fates = if audited {
                // Sent together: the statement does not wait for the answer to what comes before it.
                let (begun, fates) =
                    tokio::join!(open.db.script(BEGIN), batch::write(&open.db, open.slot, commits, true));
                begun?;
                let fates = match fates {
                    Ok(fates) => fates,
                    Err(failed) => return Err(open.back(failed).await),
                };
                let of_done = commits.iter().zip(fates.iter().flatten()).filter(|(_, fate)| is_done(fate));
                let audit: Vec<&NewAudit> = of_done.flat_map(|(commit, _)| &commit.audit).collect();
                open.finish(&audit).await?;
                fates
            } else {
                batch::write(&open.db, open.slot, commits, true).await?
            };
            let Some(fates) = fates else {
                open.another_slot(holder).await?;
                continue;
            };
            let mut answers = Vec::with_capacity(commits.len());
            for (commit, fate) in commits.iter().zip(fates) {
                answers.push(match fate {
                    Fate::Done { number } => Ok(Position::new(open.slot.id, number)),
                    Fate::AuthChanged => Err(Refused::AuthChanged),
                    // Whether it stands is known; only why it does not may be left open.
                    Fate::Conflict => Err(alone::why(&open.db, commit).await.unwrap_or(Refused::Conflict)),
                });
            }
            return Ok(answers);
        }
    }

    async fn try_alone(&mut self, commit: &Commit) -> Answer<Result<Position, Refused>> {
        let holder = self.holder;
        loop {
            let open = self.open().await?;
            open.db.script(BEGIN).await?;
            let fate = match alone::write(&open.db, open.slot, commit).await {
                Ok(fate) => fate,
                Err(failed) => return Err(open.back(failed).await),
            };
            match fate {
                Some(Ok(number)) => {
                    let audit: Vec<&NewAudit> = commit.audit.iter().collect();
                    open.finish(&audit).await?;
                    return Ok(Ok(Position::new(open.slot.id, number)));
                }
                Some(Err(refused)) => {
                    open.db.script("ROLLBACK").await?;
                    return Ok(Err(refused));
                }
                None => {
                    open.db.script("ROLLBACK").await?;
                    open.another_slot(holder).await?;
                }
            }
        }
    }

    /// A task in a transaction of its own. False if the database was not there.
    pub async fn serve(&mut self, mut task: Box<dyn Task>) -> bool {
        let ended = self.try_serve(&mut *task).await;
        let ended = self.doubt(ended);
        let lost = matches!(ended, Err(Failed::Lost(_)));
        task.finish(ended.map_err(Error::from));
        !lost
    }

    async fn try_serve(&mut self, task: &mut dyn Task) -> Answer<Result<(), Refused>> {
        let holder = self.holder;
        let open = self.open().await?;
        // The row is held until the end, so that the audit trail goes on where it stopped.
        let ours = "SELECT 1 FROM writers WHERE id = $1 AND holder = $2 FOR NO KEY UPDATE";
        loop {
            open.db.script(BEGIN).await?;
            if open.db.one(ours, args![open.slot.id, open.slot.holder]).await?.is_some() {
                break;
            }
            open.db.script("ROLLBACK").await?;
            open.another_slot(holder).await?;
        }
        match task.run(&open.db).await {
            Ok(Ok(audit)) => {
                let audit: Vec<&NewAudit> = audit.iter().collect();
                open.finish(&audit).await?;
                Ok(Ok(()))
            }
            Ok(Err(refused)) => {
                open.db.script("ROLLBACK").await?;
                Ok(Err(refused))
            }
            Err(failed) => Err(open.back(failed).await),
        }
    }

    /// Gives the row back for others to take.
    pub async fn leave(self) {
        if let Some(open) = self.open {
            let sql = "UPDATE writers SET holder = NULL WHERE id = $1 AND holder = $2";
            // Else it is taken when its time is over.
            let _ = open.db.execute(sql, args![open.slot.id, open.slot.holder]).await;
        }
    }
}

impl Open {
    /// Takes the transaction back.
    async fn back(&self, failed: Failed) -> Failed {
        match failed {
            Failed::Lost(why) => Failed::Lost(why),
            said => match self.db.script("ROLLBACK").await {
                Ok(()) => said,
                Err(lost) => lost,
            },
        }
    }

    /// Writes the audit trail and ends the transaction, in one go.
    async fn finish(&mut self, audit: &[&NewAudit]) -> Answer<()> {
        if audit.is_empty() {
            return self.db.script("COMMIT").await;
        }
        let sql = "INSERT INTO audit (org, writer, at, by, action, target, detail, hash)
                   SELECT x.org, $1, x.at, x.by, x.action, x.target, x.detail, x.hash
                   FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[])
                   WITH ORDINALITY AS x(org, at, by, action, target, detail, hash, n) ORDER BY x.n";
        let mut hashes: Vec<[u8; 32]> = Vec::with_capacity(audit.len());
        // Ours only once it is on disk.
        let mut chain: HashMap<OrgId, [u8; 32]> = HashMap::new();
        for row in audit {
            let previous = match chain.get(&row.org).or(self.chain.get(&row.org)) {
                Some(hash) => *hash,
                None => last_hash(&self.db, self.slot, row.org).await?,
            };
            let hash = audit_hash(&previous, row);
            chain.insert(row.org, hash);
            hashes.push(hash);
        }
        let text = |part: fn(&NewAudit) -> &str| audit.iter().map(|row| part(row)).collect::<Vec<&str>>();
        let orgs: Vec<i64> = audit.iter().map(|row| row.org.0).collect();
        let at: Vec<i64> = audit.iter().map(|row| row.at.0).collect();
        let (by, action) = (text(|row| &row.by), text(|row| &row.action));
        let (target, detail) = (text(|row| &row.target), text(|row| &row.detail));
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        let args = args![self.slot.id, orgs, at, by, action, target, detail, hashes];
        self.db.prepare(sql, args).await?;
        let (put, done) = tokio::join!(self.db.execute(sql, args), self.db.script("COMMIT"));
        // If the rows were not written the end of the transaction took everything back.
        put?;
        done?;
        self.chain.extend(chain);
        Ok(())
    }

    async fn another_slot(&mut self, holder: i64) -> Answer<()> {
        self.slot = take_slot(&self.db, holder).await?;
        self.chain.clear();
        Ok(())
    }
}

fn is_done(fate: &Fate) -> bool {
    matches!(fate, Fate::Done { .. })
}

async fn last_hash(db: &Session, slot: Slot, org: OrgId) -> Answer<[u8; 32]> {
    let sql = "SELECT hash FROM audit WHERE org = $1 AND writer = $2 ORDER BY id DESC LIMIT 1";
    let last = db.one(sql, args![org.0, slot.id]).await?;
    Ok(last.map_or([0; 32], |row| rows::bytes(&row, 0)))
}

/// A row that nobody has, or a new one. The first is never given out.
async fn take_slot(db: &Session, holder: i64) -> Answer<Slot> {
    let free = "UPDATE writers SET holder = $1, seen_at = now() WHERE id = (SELECT id FROM writers WHERE id > 0
                  AND (holder IS NULL OR holder = $1 OR seen_at < now() - make_interval(secs => $2)) ORDER BY id LIMIT 1
                  FOR NO KEY UPDATE SKIP LOCKED) RETURNING id";
    let new = "INSERT INTO writers (id, holder, seen_at, position) SELECT max(id) + 1, $1, now(), 0 FROM writers
               ON CONFLICT DO NOTHING RETURNING id";
    loop {
        let taken = match db.one(free, args![holder, LEASE]).await? {
            None => db.one(new, args![holder]).await?,
            taken => taken,
        };
        // Or another process made the same one just now.
        if let Some(row) = taken {
            return Ok(Slot { id: row.get(0), holder });
        }
    }
}

/// The answer to one commit that was tried by itself.
fn single(answer: Answer<Vec<Result<Position, Refused>>>) -> Written {
    match answer {
        Ok(answers) => answers.into_iter().next().ok_or_else(|| Error::Unavailable("there was no answer".into())),
        // A run of that name or number is there already.
        Err(Failed::Said(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && of_runs(&error) => {
            Ok(Err(Refused::Conflict))
        }
        Err(failed) => Err(failed.into()),
    }
}

fn of_runs(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(|said| said.table()) == Some("workflow_runs")
}
