//! Random calls to all stores, which must return the same results. Whatever the contract leaves open (positions, mail
//! ids, the order of equal elements) is not compared.
//!
//! `STEPWELL_SEED` sets the first seed, `STEPWELL_STORE_CASES` the number of seeds. A failure prints its seed and its
//! calls.

use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_core::value::ValueId;
use stepwell_store::*;

const DEFAULT_CASES: u64 = 6;
const CALLS: usize = 150;
/// Few runs, paths and keys, so that calls interact.
const RUNS: u64 = 8;

/// A small seeded generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn name(&mut self) -> String {
        ["a", "b", "c"][self.below(3) as usize].into()
    }

    fn some<T>(&mut self, most: u64, mut make: impl FnMut(&mut Rng) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

#[derive(Clone, Debug)]
enum Call {
    /// `read` has the keys of the messages to consume.
    Commit {
        batch: Vec<Commit>,
        read: Vec<String>,
    },
    Claim(Claim),
    Forget {
        run: RunId,
        key: String,
    },
    Expire(RunId, Time),
    Purge(Time, u32),
    Define(NewDefinition, Change),
    Undefine(String, Change),
    Change(Change),
    Label(RunId, Vec<String>, Vec<NewAudit>),
    Erase(RunId, Time, Vec<NewAudit>),
    Found(String),
    Join(NodeId),
    Beat(NodeId),
    Leave(NodeId),
    Grants,
}

/// The state of the generator, so that most commits are valid.
struct Plan {
    rng: Rng,
    versions: [i64; RUNS as usize],
    epoch: i64,
    clock: i64,
}

impl Plan {
    fn call(&mut self) -> Call {
        let run = RunId(self.rng.below(RUNS) as i64);
        let time = Time(self.clock - 40 + self.rng.below(60) as i64);
        match self.rng.below(28) {
            0 | 1 => {
                let (node, after) = (NodeId(self.rng.below(3) as i64), OrgId(self.rng.below(4) as i64));
                let per_org = self.rng.one_in(2).then(|| self.rng.below(4) as u32);
                let limit = self.rng.below(5) as u32;
                let odd = |org: i64| ((self.clock * 7 + org * 3 + i64::from(limit)) % 5) as u32;
                let held = (1..4).map(|org| (OrgId(org), odd(org))).filter(|(_, held)| *held > 0).collect();
                let per_org_here = Some(odd(4) + 1).filter(|most| most % 2 == 0);
                Call::Claim(Claim { node, limit, after, per_org, held, per_org_here })
            }
            2 => Call::Forget { run, key: self.rng.name() },
            3 => Call::Expire(run, time),
            4 => Call::Purge(time, 1 + self.rng.below(6) as u32),
            5 => {
                // Ids are never reused; a reused id is a case of its own.
                self.clock += 1;
                let (name, source) = (self.rng.name(), self.rng.name());
                let (workflow, by, author, at) = (format!("wf_{}", self.clock), "ann".into(), "ann".into(), time);
                let test = self.rng.one_in(3);
                let new = NewDefinition { workflow, org: ORG, name, source, by, author, at, test, after: None };
                Call::Define(new, if test { Change::default() } else { self.change() })
            }
            6 if self.rng.one_in(2) => Call::Join(NodeId(self.rng.below(3) as i64)),
            6 => Call::Beat(NodeId(self.rng.below(3) as i64)),
            7 => Call::Leave(NodeId(self.rng.below(3) as i64)),
            8 if self.rng.one_in(4) => Call::Grants,
            9 => Call::Undefine(format!("wf_{}", 100 + self.rng.below(40)), self.change()),
            10..14 => Call::Change(self.change()),
            14 => Call::Label(run, self.labels(), self.audit()),
            15 => Call::Erase(run, time, self.audit()),
            16 if self.rng.one_in(3) => Call::Found(self.rng.name()),
            _ if self.rng.one_in(5) => {
                let batch = (0..3).map(|_| self.commit(false)).collect();
                Call::Commit { batch, read: Vec::new() }
            }
            _ => {
                let batch = vec![self.commit(true)];
                Call::Commit { batch, read: self.rng.some(1, Rng::name) }
            }
        }
    }

    /// Often refused because of one of its parts: then none of it may be applied.
    fn change(&mut self) -> Change {
        let records = self.rng.some(3, |rng| {
            let (kind, id, key) = (rng.name(), rng.name(), rng.name());
            let (org, due) = (OrgId(1 + rng.below(2) as i64), rng.one_in(2).then(|| Time(rng.below(50) as i64)));
            let version = 1 + rng.below(3) as i64;
            let record = Record { kind, id, org, key, due, body: rng.name(), version };
            match rng.below(4) {
                0 | 1 => RecordChange::Create(record),
                2 => RecordChange::Replace(record),
                _ => RecordChange::Remove { kind: record.kind, id: record.id },
            }
        });
        let grants_of = self.rng.one_in(6).then_some(ORG);
        Change { records, audit: self.audit(), grants_of, decided: None }
    }

    fn audit(&mut self) -> Vec<NewAudit> {
        let at = Time(self.clock);
        self.rng.some(2, |rng| {
            let (org, detail) = (OrgId(1 + rng.below(2) as i64), "{}".into());
            NewAudit { org, at, by: rng.name(), action: rng.name(), target: rng.name(), detail }
        })
    }

    fn labels(&mut self) -> Vec<String> {
        let mut labels = self.rng.some(2, Rng::name);
        labels.sort();
        labels.dedup();
        labels
    }

    /// A `faulty` commit may write a row that already exists. Only alone: the outcome of a batch is then undefined.
    fn commit(&mut self, faulty: bool) -> Commit {
        self.clock += 1;
        let (audit, labels) = (self.audit(), self.labels());
        let (rng, clock) = (&mut self.rng, self.clock);
        let run = rng.below(RUNS) as i64;
        let expect = if rng.one_in(10) { rng.below(3) as i64 } else { self.versions[run as usize] };
        let mut commit = if expect == 0 { create(run) } else { next(run, expect) };
        commit.auth.epoch = if rng.one_in(30) { 1 } else { self.epoch };
        commit.log.at = Time(clock);
        commit.state = clock.to_string();
        let finished = rng.one_in(6).then_some(Time(clock));
        let purge = finished.filter(|_| rng.one_in(2));
        let open = ["queued", "running", "paused"][rng.below(3) as usize];
        let status = if finished.is_some() { "failed" } else { open }.into();
        let head = Head { status, definition: rng.below(6) as i64, finished, purge, ..head(Time(clock)) };
        commit.head = (expect == 0 || rng.one_in(2)).then_some(head);
        commit.steps = rng.some(2, |rng| {
            let status = ["pending", "running", "failed"][rng.below(3) as usize];
            StepRow { since: Time(clock), ..step(&rng.name(), rng.below(3) as u32, status) }
        });
        // A commit writes each attempt once.
        commit.steps.sort_by(|one, two| (&one.path, one.attempt).cmp(&(&two.path, two.attempt)));
        commit.steps.dedup_by_key(|row| (row.path.clone(), row.attempt));
        commit.values = rng.some(1, |rng| value(if faulty && rng.one_in(9) { 1 } else { clock as u32 }, &rng.name()));
        commit.log.payloads = payloads(&commit.values);
        commit.create = commit.create.map(|new| NewRun { by: rng.name(), labels, created: Time(clock), ..new });
        commit.audit = audit;
        commit.counted = rng.some(2, |rng| (format!("counter {}", rng.name()), 1 + rng.below(3) as i64));
        commit.gates.remove = rng.some(1, Rng::name);
        commit.gates.put = rng.some(1, |rng| Gate { path: rng.name(), since: Time(clock) });
        commit.work.remove = rng.some(2, |rng| WorkKey { path: rng.name(), attempt: 1 });
        let free = |path: &str| faulty || commit.work.remove.iter().any(|key| key.path == path);
        let path = Some(rng.name()).filter(|path| free(path));
        let node = rng.one_in(3).then(|| NodeId(rng.below(3) as i64));
        commit.work.put = path.iter().map(|path| work(path, OrgId(1 + clock % 3), clock, node)).collect();
        commit.timers.remove = rng.some(1, Rng::name);
        commit.timers.put = rng.some(2, |rng| timer(&rng.name(), rng.below(50) as i64));
        commit.mail = rng.some(2, |rng| mail(rng.below(RUNS) as i64, &rng.name()));
        commit.outbox = rng.some(2, |rng| notice(&rng.name(), rng.below(50) as i64));
        commit.sent = rng.some(1, Rng::name);
        if rng.one_in(4) {
            let expires = rng.one_in(2).then_some(Time(clock + 9));
            commit.unique = rng.some(2, |rng| UniqueKey { expires, ..unique(&rng.name(), &rng.name()) });
        }
        commit.groups = rng.some(2, |rng| match (rng.name(), rng.below(5)) {
            (key, 0 | 1) => GroupChange::Enter { key, limit: Some(1 + rng.below(2) as u32) },
            (key, 2) if rng.one_in(3) => GroupChange::Enter { key, limit: None },
            (key, 2 | 3) => GroupChange::Queue { key },
            (key, _) => GroupChange::Leave { key },
        });
        commit
    }
}

/// Makes the call and returns the result as text.
async fn answer(store: &dyn Store, call: Call) -> String {
    let numbers = |run: RunId, keys: Vec<String>| async move {
        let mail = store.mail(run).await.unwrap();
        mail.into_iter().filter(|mail| keys.contains(&mail.key)).map(|mail| mail.id).collect::<Vec<_>>()
    };
    match call {
        Call::Commit { mut batch, read } => {
            batch[0].read = numbers(batch[0].run, read).await;
            // One at a time: the order within a batch is up to the store.
            let mut answers = Vec::new();
            for commit in batch {
                answers.push(match store.commit(vec![commit]).await {
                    Ok(answer) => format!("{:?}", answer.into_iter().map(|one| one.map(|_| ())).collect::<Vec<_>>()),
                    Err(_) => "failed".into(),
                });
            }
            answers.join(" ")
        }
        Call::Claim(claim) => format!("{:?}", store.claim(claim).await.unwrap()),
        Call::Forget { run, key } => {
            let (mail, pair) = (numbers(run, vec![key.clone()]).await, vec![(run, key)]);
            format!("{:?}", store.forget(Stale { mail, notices: pair.clone(), timers: pair }).await.unwrap())
        }
        Call::Expire(run, at) => format!("{:?}", store.expire(run, at).await.unwrap()),
        Call::Purge(before, limit) => {
            // Stores count label rows differently, so only what is left afterwards is compared.
            while store.purge(before, limit).await.unwrap() > 0 {}
            String::new()
        }
        Call::Define(definition, with) => format!("{:?}", store.define(definition, with).await.ok()),
        Call::Undefine(workflow, with) => {
            format!("{:?}", store.undefine(ORG, &workflow, Time(1), with).await.unwrap())
        }
        Call::Change(change) => format!("{:?}", store.change(change).await.unwrap()),
        Call::Label(run, labels, audit) => format!("{:?}", store.label(run, labels, audit).await.unwrap()),
        Call::Erase(run, at, audit) => format!("{:?}", store.erase(run, at, audit).await.unwrap()),
        Call::Found(name) => format!("{:?}", store.found(&name, Time(1)).await.unwrap()),
        Call::Join(node) => format!("{:?}", join(store, node).await),
        Call::Beat(node) => format!("{:?}", store.beat(node).await.unwrap()),
        Call::Leave(node) => format!("{:?}", store.leave(node).await.unwrap()),
        Call::Grants => format!("{:?}", store.grants_changed(ORG).await.unwrap()),
    }
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

/// Records, the audit trail, gates, counters and filtered lists, as text.
async fn beside(store: &dyn Store) -> String {
    let mut all = vec![format!("{:?}", store.organisations().await.unwrap())];
    for name in ["a", "b", "c"] {
        let kind = name.to_string();
        let filter = RecordFilter { kind, org: None, prefix: String::new(), after: None, limit: 9 };
        let own = RecordFilter { org: Some(ORG), prefix: "b".into(), ..filter.clone() };
        let later = RecordFilter { after: Some("a".into()), limit: 1, ..filter.clone() };
        for filter in [filter, own, later] {
            all.push(format!("records {:?}", store.records(filter).await.unwrap()));
        }
        let mut due = store.due_records(name, Due::by(Time(25)), 9).await.unwrap();
        due.sort_by(|one, two| (one.due, &one.id).cmp(&(two.due, &two.id)));
        let found = (store.record("a", name).await.unwrap(), store.record_with_key("b", name).await.unwrap());
        let counted = store.counted(&format!("counter {name}")).await.unwrap();
        let text = |text: &str| Some(text.to_string());
        let audit = |org| AuditFilter { org, by: text(name), action: None, target: None, before: None, limit: 99 };
        // The commits of one batch may be written in any order.
        let rows = |rows: Vec<AuditRow>| sorted(rows.into_iter().map(|row| format!("{:?}", row.row)).collect());
        let trails = [store.audit(audit(ORG)).await.unwrap(), store.audit(audit(OrgId(2))).await.unwrap()].map(rows);
        all.push(format!("{due:?} {found:?} {counted} {trails:?}"));
        for filter in [
            RunFilter { labels: vec![name.into()], ..every_run() },
            RunFilter { by: text(name), until: Some(Time(150)), ..every_run() },
            RunFilter { text: text(name), status: vec!["paused".into(), "failed".into()], ..every_run() },
            RunFilter { labels: vec![name.into(), "b".into()], status: vec!["queued".into()], ..every_run() },
        ] {
            let runs = store.runs(filter).await.unwrap();
            all.push(format!("{:?}", runs.into_iter().map(|row| row.id).collect::<Vec<_>>()));
        }
        let after = Some((RunId(3), name.to_string()));
        all.push(format!("gates {:?}", store.gates(ORG, after, 3).await.unwrap()));
    }
    for workflow in (100..140).map(|n| format!("wf_{n}")) {
        let (found, versions) = (store.find_definition(ORG, &workflow).await, store.versions(ORG, &workflow).await);
        all.push(format!("{:?} {:?}", found.unwrap(), versions.unwrap()));
    }
    let (gates, open) = (store.gates(ORG, None, 99).await.unwrap(), store.open_runs(ORG).await.unwrap());
    all.push(format!("{gates:?} {open}"));
    all.join("\n")
}

/// Everything that can be queried, as text.
async fn everything(store: &dyn Store) -> String {
    let evidence = store.evidence(Vec::new()).await.unwrap();
    assert!(evidence.kept && evidence.holds(), "{evidence:?}");
    let mut all = vec![format!("{:?}", rows(store).await), beside(store).await];
    for run in (0..RUNS as i64).map(RunId) {
        let mut loaded = store.load(run).await.unwrap();
        if let Some(loaded) = &mut loaded {
            loaded.steps.sort_by(|one, two| one.path.cmp(&two.path));
            loaded.values.sort_by_key(|value| value.id);
        }
        let found = store.find_run(&format!("run_{}", run.0)).await.unwrap();
        let log: Vec<_> =
            store.tail(run, Version(1), 50).await.unwrap().into_iter().map(|it| (it.version, it.row)).collect();
        let (row, attempts) = (store.run(run).await.unwrap(), store.attempts(run).await.unwrap());
        let (values, mail) =
            (store.values(run, &[ValueId(9), ValueId(1)]).await.unwrap(), mail_keys(store, run.0).await);
        all.push(format!("{run:?} {loaded:?} {found:?} {log:?} {row:?} {attempts:?} {values:?} {mail:?}"));
    }
    for node in (0..3).map(NodeId) {
        all.push(format!("{node:?} {:?}", sorted(store.held(node).await.unwrap())));
    }
    for name in ["a", "b", "c"] {
        let (first, holder) = (store.first_queued(name).await.unwrap(), store.holder(name).await.unwrap());
        let (mut keyed, definition) = (Vec::new(), store.find_definition(ORG, name).await.unwrap());
        for key in ["a", "b", "c"] {
            keyed.push(store.keyed(name, key, Time(15)).await.unwrap());
        }
        all.push(format!("{name} {first:?} {holder:?} {keyed:?} {definition:?}"));
    }
    let mut fed: Vec<_> = store
        .feed(&Progress::default(), 999)
        .await
        .unwrap()
        .into_iter()
        .map(|fed| (fed.run, fed.log.version))
        .collect();
    let workflow = store.definitions(ORG).await.unwrap().pop().map(|definition| definition.workflow);
    let of_workflow = store.runs(RunFilter { workflow, ..every_run() }).await.unwrap();
    all.push(format!("orphans {:?}", sorted(store.orphans(None, 999).await.unwrap())));
    all.push(format!("due {:?}", sorted(store.due(Time(25), Share::ALL, 999).await.unwrap())));
    // Only the order within each run is defined.
    let outbox = store.outbox(Time(25), 0, 99).await.unwrap().into_iter();
    let mut outbox: Vec<_> = outbox.map(|notice| (notice.run, notice.key, notice.body)).collect();
    outbox.sort_by_key(|(run, ..)| *run);
    fed.sort_by_key(|(run, _)| *run);
    all.push(format!("outbox {outbox:?}"));
    all.push(format!(
        "mailed {:?} queued {:?}",
        store.mailed(None, 9).await.unwrap(),
        sorted(store.queued(None, 9).await.unwrap())
    ));
    all.push(format!("fed {fed:?} runs {:?} {of_workflow:?}", store.runs(every_run()).await.unwrap()));
    all.push(format!(
        "definitions {:?} epoch {:?}",
        store.definitions(ORG).await.unwrap(),
        store.epoch(ORG).await.unwrap()
    ));
    all.push(format!("{} {:?}", store.purgeable(Time(60)).await.unwrap(), store.integrity().await.unwrap()));
    all.join("\n")
}

async fn agree(seed: u64) {
    let ((memory, ()), (sqlite, _directory)) = (crate::memory::fresh(), crate::sqlite::fresh());
    let (postgres, _schema) = crate::postgres::with_one_writer().await;
    let others: [(&str, &dyn Store); 2] = [("sqlite", &sqlite), ("postgres", &postgres)];
    let mut plan = Plan { rng: Rng(seed), versions: [0; RUNS as usize], epoch: 1, clock: 100 };
    let mut calls = Vec::new();
    for n in 0..CALLS {
        let call = plan.call();
        calls.push(format!("{call:?}"));
        let one = answer(&memory, call.clone()).await;
        let history = || format!("seed {seed}, after\n{}", calls.join("\n"));
        for (name, other) in others {
            let two = answer(other, call.clone()).await;
            assert_eq!(one, two, "memory and {name} differ: {}", history());
        }
        let one = if n % 10 == 9 { everything(&memory).await } else { String::new() };
        for (name, other) in others.iter().filter(|_| n % 10 == 9) {
            let two = everything(*other).await;
            let differing = one.lines().zip(two.lines()).find(|(one, two)| one != two);
            assert!(one == two, "memory and {name} differ: {differing:#?} {}", history());
        }
        plan.epoch = memory.epoch(ORG).await.unwrap().unwrap();
        for run in 0..RUNS as usize {
            let loaded = memory.load(RunId(run as i64)).await.unwrap();
            plan.versions[run] = loaded.map_or(0, |loaded| loaded.version.0);
        }
    }
}

#[tokio::test]
async fn all_stores_return_the_same_results_for_random_calls() {
    let setting = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let (first, cases) = (setting("STEPWELL_SEED", 1), setting("STEPWELL_STORE_CASES", DEFAULT_CASES));
    for seed in first..first + cases {
        agree(seed).await;
    }
}
