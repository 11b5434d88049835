//! Behaviour specific to the in-memory store: clones survive a simulated crash, and no method waits.

use crate::sample::*;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use stepwell_core::time::Time;
use stepwell_store::memory::MemoryStore;
use stepwell_store::*;

/// An empty store. There is nothing to keep alive with it.
pub fn fresh() -> (MemoryStore, ()) {
    (MemoryStore::default(), ())
}

/// Returns the output of a future that must be ready at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the future is pending"),
    }
}

#[test]
fn clones_share_commits_and_no_method_waits() {
    let store = MemoryStore::default();
    let disk = store.clone();
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 1, None)];
    at_once(accepted(&store, first));
    assert_eq!(at_once(store.claim(claim(NODE, 1))).unwrap().len(), 1);
    drop(store);
    assert_eq!(at_once(disk.load(RunId(1))).unwrap().unwrap().version, Version(1));
    assert_eq!(at_once(disk.held(NODE)).unwrap().len(), 1);
    assert_eq!(at_once(disk.purge(Time(1), 1)).unwrap(), 0);
    assert_eq!(at_once(MemoryStore::default().load(RunId(1))).unwrap(), None);
}

#[test]
fn a_restart_orphans_all_held_work() {
    let store = MemoryStore::default();
    at_once(join(&store, NODE));
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 1, Some(NODE))];
    at_once(accepted(&store, first));
    assert!(at_once(store.orphans(None, 10)).unwrap().is_empty());
    store.restarted();
    assert_eq!(at_once(store.orphans(None, 10)).unwrap().len(), 1);
}
