//! Cases about work: claims, fairness between organisations, and orphans of nodes that are gone.

use crate::sample::*;
use std::collections::{BTreeMap, BTreeSet};
use stepwell_store::*;

fn key(path: &str, attempt: u32) -> WorkKey {
    WorkKey { path: path.into(), attempt }
}

pub async fn no_two_claims_cover_one_attempt(store: &dyn Store) {
    for run in 0..50 {
        let mut commit = create(run);
        commit.work.put = vec![work("a", ORG, run, None), work("b", ORG, run, None)];
        accepted(store, commit).await;
    }
    let mut seen = BTreeSet::new();
    let (mut empty, mut node) = (0, 0);
    while empty < 2 {
        node += 1;
        let (one, two) = tokio::join!(store.claim(claim(NodeId(node), 7)), store.claim(claim(NodeId(node + 1_000), 7)));
        for claimed in [one.unwrap(), two.unwrap()] {
            empty += usize::from(claimed.is_empty());
            for work in claimed {
                assert!(seen.insert((work.run, work.key)), "claimed twice");
            }
        }
    }
    assert_eq!(seen.len(), 100);
}

pub async fn claims_take_turns_between_organisations(store: &dyn Store) {
    let mut flood = create(1);
    flood.work.put = (0..20).map(|n| work(&format!("a{n}"), ORG, n, None)).collect();
    accepted(store, flood).await;
    let mut quiet = create(2);
    quiet.work.put = vec![work("b", OrgId(2), 1_000, None)];
    accepted(store, quiet).await;
    let claimed = store.claim(claim(NODE, 2)).await.unwrap();
    let orgs: BTreeSet<OrgId> = claimed.iter().map(|work| work.org).collect();
    assert_eq!(orgs.len(), 2, "{claimed:?}");
    assert!(claimed.iter().any(|work| work.key.path == "a0"), "the longest-waiting attempt goes first: {claimed:?}");
}

pub async fn work_is_claimed_at_commit_and_orphaned_when_its_node_is_gone(store: &dyn Store) {
    assert!(!store.beat(NODE).await.unwrap());
    join(store, NODE).await;
    assert!(store.beat(NODE).await.unwrap());
    let mut commit = create(1);
    commit.work.put = vec![work("a", ORG, 1, Some(NODE)), work("b", ORG, 1, Some(NodeId(8)))];
    accepted(store, commit).await;
    assert!(store.claim(claim(NODE, 10)).await.unwrap().is_empty());
    let paths = |list: Vec<Claimed>| list.into_iter().map(|work| work.key.path).collect::<Vec<_>>();
    assert_eq!(paths(store.held(NODE).await.unwrap()), ["a"]);
    assert_eq!(paths(store.orphans(None, 10).await.unwrap()), ["b"]);
    store.leave(NODE).await.unwrap();
    assert_eq!(paths(store.orphans(None, 10).await.unwrap()), ["a", "b"]);
    let mut done = next(1, 1);
    done.work.remove = vec![key("b", 1)];
    accepted(store, done).await;
    assert_eq!(paths(store.orphans(None, 10).await.unwrap()), ["a"]);
}

pub async fn claims_continue_after_the_organisation_served_last(store: &dyn Store) {
    let mut first = create(1);
    first.work.put = (0..4).map(|n| work(&format!("a{n}"), ORG, n, None)).collect();
    first.work.put.extend((0..2).map(|n| work(&format!("b{n}"), OrgId(2), 100 + n, None)));
    accepted(store, first).await;
    let mut after = OrgId(0);
    let mut turns = Vec::new();
    while let Some(work) = store.claim(Claim { after, ..claim(NODE, 1) }).await.unwrap().pop() {
        after = work.org;
        turns.push(work.key.path);
    }
    assert_eq!(turns, ["a0", "b0", "a1", "b1", "a2", "a3"]);
}

pub async fn no_organisation_exceeds_its_limit_of_claimed_attempts(store: &dyn Store) {
    let mut first = create(1);
    first.work.put = (0..5).map(|n| work(&format!("a{n}"), ORG, n, None)).collect();
    // Attempts claimed at commit and attempts claimed by other nodes count too.
    first.work.put.push(work("a9", ORG, 9, Some(NodeId(8))));
    first.work.put.extend((0..5).map(|n| work(&format!("b{n}"), OrgId(2), n, None)));
    accepted(store, first).await;
    let paths = |limit: u32, per_org: u32| async move {
        let claimed = store.claim(Claim { per_org: Some(per_org), ..claim(NODE, limit) }).await.unwrap();
        claimed.into_iter().map(|work| work.key.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(10, 3).await, ["a0", "b0", "a1", "b1", "b2"]);
    assert!(paths(10, 3).await.is_empty());
    let mut done = next(1, 1);
    done.work.remove = vec![key("a9", 1), key("b0", 1)];
    accepted(store, done).await;
    assert_eq!(paths(1, 3).await, ["a2"]);
    assert_eq!(paths(10, 3).await, ["b3"]);
    assert_eq!(paths(10, 0).await, [""; 0]);
    assert_eq!(paths(10, 100).await, ["a3", "b4", "a4"]);
}

pub async fn organisations_that_execute_the_fewest_attempts_come_first(store: &dyn Store) {
    let mut first = create(1);
    for (org, name) in [(1, "a"), (2, "b"), (3, "c")] {
        first.work.put.extend((0..4).map(|n| work(&format!("{name}{n}"), OrgId(org), n, None)));
    }
    accepted(store, first).await;
    let held = BTreeMap::from([(OrgId(1), 2), (OrgId(2), 1), (OrgId(9), 7)]);
    let claim = |limit, per_org_here| Claim { held: held.clone(), per_org_here, ..claim(NODE, limit) };
    let paths = |claimed: Vec<Claimed>| claimed.into_iter().map(|work| work.key.path).collect::<Vec<_>>();
    // No more than two per organisation on this node: the first has as many already.
    assert_eq!(paths(store.claim(claim(10, Some(2))).await.unwrap()), ["c0", "b0", "c1"]);
    assert_eq!(paths(store.claim(claim(10, Some(0))).await.unwrap()), [""; 0]);
    assert_eq!(paths(store.claim(claim(4, None)).await.unwrap()), ["c2", "b1", "c3", "a0"]);
}

pub async fn an_attempt_is_replaced_by_the_next_in_one_commit(store: &dyn Store) {
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 1, None), work("b", ORG, 2, None)];
    accepted(store, first).await;
    assert_eq!(store.claim(claim(NODE, 10)).await.unwrap().len(), 2);
    let mut retried = next(1, 1);
    retried.work.remove = vec![key("a", 1), key("b", 1)];
    retried.work.put = vec![Work { key: key("a", 2), ..work("a", ORG, 3, None) }, work("b", ORG, 4, None)];
    accepted(store, retried).await;
    assert!(store.held(NODE).await.unwrap().is_empty());
    let claimed: Vec<WorkKey> =
        store.claim(claim(NodeId(8), 10)).await.unwrap().into_iter().map(|work| work.key).collect();
    assert_eq!(claimed, [key("a", 2), key("b", 1)]);
}

pub async fn claimed_work_is_held_until_it_is_removed(store: &dyn Store) {
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 1, None), work("b", ORG, 2, Some(NODE))];
    accepted(store, first).await;
    let claimed = store.claim(claim(NODE, 10)).await.unwrap();
    assert_eq!(claimed, [Claimed { run: RunId(1), key: key("a", 1), org: ORG, kind: "tool".into() }]);
    assert_eq!(store.held(NODE).await.unwrap().len(), 2);
    assert!(store.held(NodeId(8)).await.unwrap().is_empty());
    // The node never joined, and only one orphan is requested.
    assert_eq!(store.orphans(None, 1).await.unwrap().len(), 1);
    join(store, NODE).await;
    assert!(store.beat(NODE).await.unwrap());
    assert!(store.orphans(None, 10).await.unwrap().is_empty());
}
