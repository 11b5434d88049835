//! Tallies hold through everything that a store does itself.

use crate::registry::entry;
use crate::sample::*;
use stepwell_core::time::Time;
use stepwell_store::*;

pub async fn holds(store: &dyn Store) -> Evidence {
    let evidence = store.evidence(Vec::new()).await.unwrap();
    assert!(evidence.kept && evidence.holds(), "{evidence:?}");
    evidence
}

fn record(id: &str) -> Record {
    let (kind, key, body) = ("kind".into(), format!("key of {id}"), "{}".into());
    Record { kind, id: id.into(), org: ORG, key, due: None, body, version: 1 }
}

fn audited(target: &str) -> Change {
    Change { audit: vec![entry(ORG, "ann", "x", target)], ..Change::default() }
}

pub async fn tallies_hold_when_some_commits_of_a_batch_are_refused(store: &dyn Store) {
    let keyed = |run| Commit { unique: vec![unique("a", "a")], ..create(run) };
    accepted(store, keyed(1)).await;
    for audit in [Vec::new(), vec![entry(ORG, "ann", "x", "y")]] {
        let changed = Commit { auth: Auth { org: ORG, epoch: 9 }, ..next(1, 1) };
        let batch = vec![next(1, 7), Commit { audit, ..keyed(2) }, changed];
        let answers = store.commit(batch).await.unwrap();
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        holds(store).await;
    }
    let answers = store.commit((3..9).map(|run| if run == 5 { keyed(run) } else { create(run) }).collect()).await;
    assert_eq!(answers.unwrap().iter().filter(|answer| answer.is_ok()).count(), 5);
    assert_eq!(holds(store).await.classes[0].found, 6);
}

pub async fn tallies_hold_after_a_change_of_key_and_a_refused_one(store: &dyn Store) {
    accepted(store, Commit { audit: vec![entry(ORG, "ann", "x", "1")], ..create(1) }).await;
    store.change(Change { records: vec![RecordChange::Create(record("a"))], ..audited("2") }).await.unwrap().unwrap();
    holds(store).await;
    let key = ChainKey::new([5; 32], Time(0));
    store.rekey(key, audited("3")).await.unwrap().unwrap();
    assert_eq!(store.chain_key(), key);
    let tallies = holds(store).await.tallies;
    let anchor: Vec<TrailPoint> =
        tallies.iter().map(|tally| TrailPoint { writer: tally.writer, trail: tally.trail }).collect();
    let taken = Change { records: vec![RecordChange::Create(record("a"))], ..audited("not") };
    assert!(store.rekey(ChainKey::new([6; 32], Time(0)), taken).await.unwrap().is_err());
    assert_eq!(store.chain_key(), key);
    store.change(Change { records: vec![RecordChange::Replace(record("a"))], ..audited("4") }).await.unwrap().unwrap();
    accepted(store, finish(1, 1, Some(Time(5)))).await;
    assert!(store.erase(RunId(1), Time(6), Vec::new()).await.unwrap());
    holds(store).await;
    while store.purge(Time(10), 1).await.unwrap() > 0 {
        holds(store).await;
    }
    let remove = RecordChange::Remove { kind: "kind".into(), id: "a".into() };
    store.change(Change { records: vec![remove], ..Change::default() }).await.unwrap().unwrap();
    assert_eq!(holds(store).await.classes.iter().map(|class| class.found).collect::<Vec<_>>(), [0, 0, 0]);
    assert!(store.evidence(anchor.clone()).await.unwrap().holds());
    let mut wrong = anchor;
    wrong[0].trail.rows += 100;
    assert_eq!(store.evidence(wrong.clone()).await.unwrap().missed, wrong[..1]);
}
