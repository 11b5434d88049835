//! What only the store in memory has: clones that outlive a crash, and answers without waiting.

use crate::sample::*;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use stepwell_core::time::Time;
use stepwell_store::memory::MemoryStore;
use stepwell_store::*;

/// An empty store; nothing goes with it.
pub fn fresh() -> (MemoryStore, ()) {
    (MemoryStore::default(), ())
}

/// The answer of a future that must have it at once.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn a_clone_has_what_the_other_committed_and_no_method_waits() {
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
fn a_restart_makes_orphans_of_all_that_was_held() {
    let store = MemoryStore::default();
    at_once(join(&store, NODE));
    let mut first = create(1);
    first.work.put = vec![work("a", ORG, 1, Some(NODE))];
    at_once(accepted(&store, first));
    assert!(at_once(store.orphans(10)).unwrap().is_empty());
    store.restarted();
    assert_eq!(at_once(store.orphans(10)).unwrap().len(), 1);
}
