//! One writer connection: it holds a row of `writers`, numbers its commits, and chains the hashes of the audit trail.

use super::args::args;
use super::batch::{self, Batch, Outcome, Slot};
use super::evidence::{self, Ledger};
use super::own::Own;
use super::session::{DbResult, Failed, Purpose, Session};
use super::writer::{Shared, Task, Written};
use super::{rows, single};
use crate::evidence::{Effects, Entry, RunEntry, SharedKey};
use crate::{ChainKey, Commit, Error, NewAudit, OrgId, Position, Refused, audit_hash};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::error::SqlState;

/// The transaction of a stalled process must not block others for long.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '10s';
                     SET LOCAL lock_timeout = '10s'";
/// How long a writer keeps its row without a heartbeat, in seconds.
const LEASE: f64 = 60.0;

/// A writer connection that connects, and reconnects, when it is used.
pub struct WriterConnection {
    shared: Shared,
    holder: i64,
    open: Option<Connected>,
}

/// The state of an open connection.
struct Connected {
    db: Arc<Session>,
    slot: Slot,
    /// The last hash of each organisation's audit trail in this writer's chain.
    chain: Chain,
    key: SharedKey,
    /// The tally as it is on disk. `None` if the database keeps none yet.
    ledger: Option<Ledger>,
    /// The number of the last commit.
    written: i64,
    own: Own,
}

impl WriterConnection {
    pub fn new(shared: Shared, holder: i64) -> WriterConnection {
        WriterConnection { shared, holder, open: None }
    }

    async fn open(&mut self) -> DbResult<&mut Connected> {
        if self.open.as_ref().is_none_or(|open| open.db.is_closed()) {
            self.open = None;
            let Shared { database, key, own, .. } = &self.shared;
            let db = Arc::new(Session::connect(database, Purpose::Writing).await?);
            let Taken { slot, position } = take_slot(&db, self.holder, own).await?;
            let ledger = Ledger::load(&db, key.get(), slot.id).await?;
            let (chain, key, own) = (HashMap::new(), key.clone(), own.clone());
            self.open = Some(Connected { db, slot, chain, key, ledger, written: position, own });
        }
        Ok(self.open.as_mut().expect("opened above"))
    }

    /// Drops the connection after a failure that may have left it in the middle of something; the next call reconnects
    /// and reads the state again. Data errors leave the connection usable.
    fn discard_if_broken<T>(&mut self, answer: DbResult<T>) -> DbResult<T> {
        let sound = |failed: &Failed| matches!(failed, Failed::Rejected(_)) && failed.is_data_error();
        if answer.as_ref().is_err_and(|failed| !sound(failed)) {
            self.open = None;
        }
        answer
    }

    /// Writes commits that can share a statement and returns their results in order. If that fails each is retried
    /// alone.
    pub async fn commit(&mut self, commits: &[Commit]) -> Vec<Written> {
        let group: Vec<&Commit> = commits.iter().collect();
        let failed = match self.commit_batch(&group, Expect::All).await {
            Ok(answers) => return answers.into_iter().map(Ok).collect(),
            Err(failed) => failed,
        };
        let refused = failed.state() == Some(&SqlState::DIVISION_BY_ZERO);
        if !failed.is_data_error() || (commits.len() == 1 && !refused) {
            let first = first_result(Err(failed));
            let rest = (1..commits.len()).map(|_| Err(Error::Unavailable("the database did not answer".into())));
            return std::iter::once(first).chain(rest).collect();
        }
        let mut written: Vec<Written> = Vec::with_capacity(commits.len());
        for commit in commits {
            // When the database is gone, callers must not wait for it once per commit.
            let gone = matches!(written.last(), Some(Err(Error::Unavailable(_))));
            written.push(match gone {
                false => first_result(self.commit_batch(&[commit], Expect::Any).await),
                true => Err(Error::Unavailable("the database did not answer".into())),
            });
        }
        written
    }

    /// Writes a commit that needs its own transaction.
    pub async fn commit_single(&mut self, commit: &Commit) -> Written {
        let answer = self.try_single(commit).await;
        first_result(self.discard_if_broken(answer).map(|answer| vec![answer]))
    }

    async fn commit_batch(&mut self, commits: &[&Commit], expect: Expect) -> DbResult<Vec<Result<Position, Refused>>> {
        let answer = self.try_batch(commits, expect).await;
        self.discard_if_broken(answer)
    }

    async fn try_batch(&mut self, commits: &[&Commit], expect: Expect) -> DbResult<Vec<Result<Position, Refused>>> {
        let holder = self.holder;
        loop {
            let open = self.open().await?;
            let audited = commits.iter().any(|commit| !commit.audit.is_empty());
            let batch = Batch { slot: open.slot, commits, keys: true, tally: None };
            let outcomes = if audited || (expect == Expect::Any && open.ledger.is_some()) {
                // Pipelined: the statement is sent without waiting for the answer to BEGIN.
                let (begun, outcomes) = tokio::join!(open.db.script(BEGIN), batch::write(&open.db, batch));
                begun?;
                let outcomes = match outcomes {
                    Ok(outcomes) => outcomes,
                    Err(failed) => return Err(open.roll_back(failed).await),
                };
                let of_applied =
                    commits.iter().zip(outcomes.iter().flatten()).filter(|(_, outcome)| is_applied(outcome));
                let applied: Vec<&Commit> = of_applied.map(|(commit, _)| *commit).collect();
                let audit: Vec<&NewAudit> = applied.iter().flat_map(|commit| &commit.audit).collect();
                let entries = applied.iter().flat_map(|commit| RunEntry::of(commit)).collect();
                open.finish(&audit, entries).await?;
                outcomes
            } else {
                let entries = commits.iter().flat_map(|commit| RunEntry::of(commit));
                let after = open.ledger.map(|ledger| ledger.after(entries, &[]));
                let tally = after.map(|ledger| ledger.signed(open.slot.id));
                let outcomes = batch::write(&open.db, Batch { tally, ..batch }).await?;
                open.ledger = after;
                outcomes
            };
            let Some(outcomes) = outcomes else {
                open.take_another_slot(holder).await?;
                continue;
            };
            let mut answers = Vec::with_capacity(commits.len());
            for (commit, outcome) in commits.iter().zip(outcomes) {
                answers.push(match outcome {
                    Outcome::Applied { number } => {
                        open.written = number.max(open.written);
                        Ok(Position::new(open.slot.id, number))
                    }
                    Outcome::AuthChanged => Err(Refused::AuthChanged),
                    // It is known that the commit was not applied; the exact reason is optional.
                    Outcome::Conflict => Err(single::refusal(&open.db, commit).await.unwrap_or(Refused::Conflict)),
                });
            }
            return Ok(answers);
        }
    }

    async fn try_single(&mut self, commit: &Commit) -> DbResult<Result<Position, Refused>> {
        let holder = self.holder;
        loop {
            let open = self.open().await?;
            open.db.script(BEGIN).await?;
            let outcome = match single::write(&open.db, open.slot, commit).await {
                Ok(outcome) => outcome,
                Err(failed) => return Err(open.roll_back(failed).await),
            };
            match outcome {
                Some(Ok(number)) => {
                    let audit: Vec<&NewAudit> = commit.audit.iter().collect();
                    open.finish(&audit, RunEntry::of(commit).collect()).await?;
                    open.written = number;
                    return Ok(Ok(Position::new(open.slot.id, number)));
                }
                Some(Err(refused)) => {
                    open.db.script("ROLLBACK").await?;
                    return Ok(Err(refused));
                }
                None => {
                    open.db.script("ROLLBACK").await?;
                    open.take_another_slot(holder).await?;
                }
            }
        }
    }

    /// Runs a task in its own transaction. Returns false if the connection was lost.
    pub async fn serve(&mut self, mut task: Box<dyn Task>) -> bool {
        let ended = self.try_serve(&mut *task).await;
        let ended = self.discard_if_broken(ended);
        let lost = matches!(ended, Err(Failed::Lost(_)));
        task.finish(ended.map_err(Error::from));
        !lost
    }

    async fn try_serve(&mut self, task: &mut dyn Task) -> DbResult<Result<(), Refused>> {
        let holder = self.holder;
        let open = self.open().await?;
        // The row stays locked until the end, so that the audit chain continues where it stopped.
        let ours = "SELECT 1 FROM writers WHERE id = $1 AND holder = $2 FOR NO KEY UPDATE";
        loop {
            open.db.script(BEGIN).await?;
            if open.db.one(ours, args![open.slot.id, open.slot.holder]).await?.is_some() {
                break;
            }
            open.db.script("ROLLBACK").await?;
            open.take_another_slot(holder).await?;
        }
        match task.run(&open.db).await {
            Ok(Ok(Effects { audit, entries })) => {
                let audit: Vec<&NewAudit> = audit.iter().collect();
                open.finish(&audit, entries).await?;
                Ok(Ok(()))
            }
            Ok(Err(refused)) => {
                open.db.script("ROLLBACK").await?;
                Ok(Err(refused))
            }
            Err(failed) => Err(open.roll_back(failed).await),
        }
    }

    /// Releases the row for other writers.
    pub async fn leave(self) {
        if let Some(open) = self.open {
            let sql = "UPDATE writers SET holder = NULL WHERE id = $1 AND holder = $2";
            // On failure the row is released when its lease expires.
            let _ = open.db.execute(sql, args![open.slot.id, open.slot.holder]).await;
        }
    }
}

impl Connected {
    /// Rolls the transaction back and returns the failure.
    async fn roll_back(&self, failed: Failed) -> Failed {
        match failed {
            Failed::Lost(why) => Failed::Lost(why),
            rejected => match self.db.script("ROLLBACK").await {
                Ok(()) => rejected,
                Err(lost) => lost,
            },
        }
    }

    /// Writes the audit rows and the tally, and commits, in one round trip.
    async fn finish(&mut self, audit: &[&NewAudit], entries: Vec<Entry>) -> DbResult<()> {
        let db = &self.db;
        // Merged into the connection's state only after the commit.
        let (chain, hashes) = chained(db, self.slot.id, (self.key(), &self.chain), audit).await?;
        let changed = !audit.is_empty() || !entries.is_empty();
        let after = self.ledger.filter(|_| changed).map(|ledger| ledger.after(entries, &hashes));
        let signed = after.map(|ledger| ledger.signed(self.slot.id));
        let rows = AuditRows::new(audit, &hashes);
        rows.prepare(db, self.slot.id).await?;
        if let Some(signed) = &signed {
            evidence::prepare(db, self.slot.id, signed).await?;
        }
        let put_tally = async {
            match &signed {
                Some(signed) => evidence::put(db, self.slot.id, signed).await,
                None => Ok(()),
            }
        };
        let (appended, tallied, done) = tokio::join!(rows.insert(db, self.slot.id), put_tally, db.script("COMMIT"));
        // If a statement failed, COMMIT rolled the transaction back.
        appended?;
        tallied?;
        done?;
        self.ledger = after.or(self.ledger);
        self.chain.extend(chain);
        Ok(())
    }

    fn key(&self) -> ChainKey {
        self.ledger.map_or(ChainKey::PUBLIC, |ledger| ledger.key())
    }

    async fn take_another_slot(&mut self, holder: i64) -> DbResult<()> {
        self.own.lost(self.slot.id, self.written);
        let Taken { slot, position } = take_slot(&self.db, holder, &self.own).await?;
        (self.slot, self.written) = (slot, position);
        self.chain.clear();
        self.ledger = Ledger::load(&self.db, self.key.get(), self.slot.id).await?;
        Ok(())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.own.lost(self.slot.id, self.written);
    }
}

/// A row of `writers`, and the position it was at.
struct Taken {
    slot: Slot,
    position: i64,
}

/// How many commits of a batch are expected to be applied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// All; then the tally can be part of the statement, which fails otherwise.
    All,
    Any,
}

/// The last hash of each organisation's audit trail in a writer's chain.
type Chain = HashMap<OrgId, [u8; 32]>;

/// Chains audit rows to those before them. Returns where each chain ends, and the hashes of the rows.
async fn chained(
    db: &Session,
    writer: i32,
    (key, known): (ChainKey, &Chain),
    audit: &[&NewAudit],
) -> DbResult<(Chain, Vec<[u8; 32]>)> {
    let (mut chain, mut hashes) = (Chain::new(), Vec::with_capacity(audit.len()));
    for row in audit {
        let previous = match chain.get(&row.org).or(known.get(&row.org)) {
            Some(hash) => *hash,
            None => last_hash(db, writer, row.org).await?,
        };
        let hash = key.seal(audit_hash(&previous, row));
        chain.insert(row.org, hash);
        hashes.push(hash);
    }
    Ok((chain, hashes))
}

/// Audit rows as the columns of one statement.
struct AuditRows<'a> {
    numbers: [Vec<i64>; 2],
    texts: [Vec<&'a str>; 4],
    hashes: Vec<&'a [u8]>,
}

const APPEND: &str = "INSERT INTO audit (org, writer, at, by, action, target, detail, hash)
    SELECT x.org, $1, x.at, x.by, x.action, x.target, x.detail, x.hash
    FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[])
    WITH ORDINALITY AS x(org, at, by, action, target, detail, hash, n) ORDER BY x.n";

impl<'a> AuditRows<'a> {
    fn new(audit: &'a [&NewAudit], hashes: &'a [[u8; 32]]) -> AuditRows<'a> {
        let text = |part: fn(&NewAudit) -> &str| audit.iter().map(|row| part(row)).collect::<Vec<&str>>();
        AuditRows {
            numbers: [audit.iter().map(|row| row.org.0).collect(), audit.iter().map(|row| row.at.0).collect()],
            texts: [text(|row| &row.by), text(|row| &row.action), text(|row| &row.target), text(|row| &row.detail)],
            hashes: hashes.iter().map(|hash| &hash[..]).collect(),
        }
    }

    async fn prepare(&self, db: &Session, writer: i32) -> DbResult<()> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let AuditRows { numbers: [orgs, at], texts: [by, action, target, detail], hashes } = self;
        db.prepare(APPEND, args![writer, orgs, at, by, action, target, detail, hashes]).await
    }

    async fn insert(&self, db: &Session, writer: i32) -> DbResult<()> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let AuditRows { numbers: [orgs, at], texts: [by, action, target, detail], hashes } = self;
        db.execute(APPEND, args![writer, orgs, at, by, action, target, detail, hashes]).await.map(|_| ())
    }
}

/// Appends audit rows outside of a writer's connection, which must be locked out.
pub async fn append(db: &Session, writer: i32, key: &ChainKey, audit: &[&NewAudit]) -> DbResult<()> {
    let (_, hashes) = chained(db, writer, (*key, &Chain::new()), audit).await?;
    AuditRows::new(audit, &hashes).insert(db, writer).await
}

fn is_applied(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Applied { .. })
}

async fn last_hash(db: &Session, writer: i32, org: OrgId) -> DbResult<[u8; 32]> {
    let sql = "SELECT hash FROM audit WHERE org = $1 AND writer = $2 ORDER BY id DESC LIMIT 1";
    let last = db.one(sql, args![org.0, writer]).await?;
    Ok(last.map_or([0; 32], |row| rows::bytes(&row, 0)))
}

/// Takes a free row of `writers`, or creates one. Row 0 is never taken.
async fn take_slot(db: &Session, holder: i64, own: &Own) -> DbResult<Taken> {
    let free = "UPDATE writers w SET holder = $1, seen_at = now() FROM (SELECT id, holder FROM writers WHERE id > 0
                  AND (holder IS NULL OR holder = $1 OR seen_at < now() - make_interval(secs => $2))
                  ORDER BY holder IS DISTINCT FROM $1, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) f
                WHERE w.id = f.id RETURNING w.id, w.position, coalesce(f.holder = $1, false)";
    let new = "INSERT INTO writers (id, holder, seen_at, position) SELECT max(id) + 1, $1, now(), 0 FROM writers
               ON CONFLICT DO NOTHING RETURNING id, position, false";
    loop {
        let taken = match db.one(free, args![holder, LEASE]).await? {
            None => db.one(new, args![holder]).await?,
            taken => taken,
        };
        // `None` if another process created the same row at the same time: try again.
        if let Some(row) = taken {
            let (slot, position) = (Slot { id: row.get(0), holder }, row.get(1));
            if row.get(2) {
                own.kept(slot.id, position);
            } else {
                own.took(slot.id, position);
            }
            return Ok(Taken { slot, position });
        }
    }
}

/// Returns the result of a commit that was written alone.
fn first_result(answer: DbResult<Vec<Result<Position, Refused>>>) -> Written {
    match answer {
        Ok(answers) => {
            answers.into_iter().next().ok_or_else(|| Error::Unavailable("the database returned no result".into()))
        }
        // A run with this id or public id already exists.
        Err(Failed::Rejected(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && is_on_runs(&error) => {
            Ok(Err(Refused::Conflict))
        }
        Err(failed) => Err(failed.into()),
    }
}

fn is_on_runs(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().and_then(|db_error| db_error.table()) == Some("workflow_runs")
}
