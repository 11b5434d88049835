//! This node among the others on one store: it joins, sends heartbeats, learns who else is alive, and which share of all
//! runs it looks after.
//!
//! A node that stays silent for longer than its lease is expelled: the others take over what the store says it holds. It
//! finds out with its next heartbeat. It then joins under a new id, so that nothing can be mistaken for its former self's,
//! and drops what it executes. Work in progress at that moment resolves itself:
//!
//! - A report, or any other message, is planned on the run as it stands. If the attempt was taken over, its number is
//!   stale and the report is ignored; if not, the report counts and there is nothing left to take over.
//! - A commit or a claim that still names the old id leaves attempts with a dead node: orphans, which any node can take
//!   over. They are not begun here: one may have been begun and dropped already, and an attempt is executed once.
//! - A slot is returned by the attempt that held it, however it ends.
//!
//! After a database outage no lease was renewed, and the first node to come back must not expel the others. So a node
//! expels others only after its own heartbeats have arrived for as long as a lease.

use super::{Cluster, Peer};
use crate::error::Error;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_store::{NewNode, NodeId, NodeRow, RunId, Share};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Beats within a lease.
const BEATS: u32 = 5;
/// Heartbeats attempted within a lease while the store does not answer.
const TRIES: u32 = 50;
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// A timer that is this late is fired by any node that sees it.
const OVERDUE: Millis = Millis(1_000);

pub struct Node {
    id: AtomicI64,
    name: String,
    slots: u32,
    lease: Duration,
    state: Mutex<State>,
    /// A node has left or was expelled: its work must be taken over.
    pub fewer: Notify,
}

struct State {
    pulse: Pulse,
    alive: Vec<NodeId>,
    /// Among those that are alive.
    place: (u32, u32),
}

impl Node {
    pub fn new(id: NodeId, name: String, slots: u32, lease: Duration) -> Node {
        let state = State { pulse: Pulse::default(), alive: Vec::new(), place: (0, 1) };
        Node { id: AtomicI64::new(id.0), name, slots, lease, state: Mutex::new(state), fewer: Notify::new() }
    }

    pub fn id(&self) -> NodeId {
        NodeId(self.id.load(Ordering::SeqCst))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the node")
    }

    /// The runs that this node looks after.
    pub fn share(&self, now: Time) -> Share {
        match self.state().place {
            (_, 1) => Share::ALL,
            (index, of) => Share { index, of, overdue: Time(now.0 - OVERDUE.0 as i64) },
        }
    }

    /// Whether it falls to this node to do what one of them has to do some time.
    pub fn is_first(&self) -> bool {
        self.state().place.0 == 0
    }

    pub fn has(&self, run: RunId) -> bool {
        self.share(Time(0)).has(run)
    }

    /// Whether this node may say that another one is gone.
    pub fn is_steady(&self) -> bool {
        self.state().pulse.is_steady(Instant::now(), self.lease)
    }

    /// True if the share is another one than before.
    fn learn(&self, nodes: &[NodeRow]) -> bool {
        let alive: Vec<NodeId> = nodes.iter().map(|row| row.node.id).collect();
        let mut state = self.state();
        // Given up just now: the next beat will tell.
        let Some(place) = place(&alive, self.id()) else { return false };
        let someone_is_gone = state.alive.iter().any(|node| !alive.contains(node));
        let changed = place != state.place;
        (state.alive, state.place) = (alive, place);
        drop(state);
        if someone_is_gone {
            self.fewer.notify_one();
        }
        changed
    }
}

/// Where a node stands among all, and how many there are.
fn place(alive: &[NodeId], node: NodeId) -> Option<(u32, u32)> {
    alive.contains(&node).then(|| (alive.iter().filter(|other| **other < node).count() as u32, alive.len() as u32))
}

/// Since when all beats have arrived.
#[derive(Default)]
struct Pulse {
    since: Option<Instant>,
    last: Option<Instant>,
}

impl Pulse {
    fn felt(&mut self, now: Instant, lease: Duration) {
        // One that took long, or was sent late, says nothing about the time in between.
        if self.last.is_none_or(|last| now - last > lease / 2) {
            self.since = None;
        }
        self.since.get_or_insert(now);
        self.last = Some(now);
    }

    fn missed(&mut self) {
        self.since = None;
    }

    fn is_steady(&self, now: Instant, lease: Duration) -> bool {
        let recent = self.last.is_some_and(|last| now - last <= lease / 2);
        recent && self.since.is_some_and(|since| now - since >= lease)
    }
}

pub async fn join(cluster: &Cluster, id: NodeId) -> Result<(), Error> {
    let Node { name, slots, .. } = &cluster.node;
    let (name, version) = (name.clone(), env!("CARGO_PKG_VERSION").to_string());
    cluster.store.join(NewNode { id, name, version, slots: *slots, joined: cluster.clock.now() }).await?;
    cluster.node.state().pulse = Pulse::default();
    cluster.node.state().pulse.felt(Instant::now(), cluster.node.lease);
    cluster.node.id.store(id.0, Ordering::SeqCst);
    Ok(())
}

/// Sends heartbeats until the engine stops.
pub async fn beat(cluster: Arc<Cluster>, peer: Arc<dyn Peer>) {
    let lease = cluster.node.lease;
    while !cluster.stop.is_cancelled() {
        let answer = tokio::time::timeout(lease / 2, beat_once(&cluster, &*peer)).await;
        let answer = answer.unwrap_or_else(|_| Err(Error::Unavailable("the store does not answer".into())));
        let pause = match answer {
            Ok(()) => lease / BEATS,
            Err(error) => {
                cluster.node.state().pulse.missed();
                if !cluster.stop.is_cancelled() {
                    tracing::warn!(%error, "cannot send a heartbeat");
                }
                (lease / TRIES).max(SHORTEST_PAUSE)
            }
        };
        cluster.pause(pause).await;
    }
}

async fn beat_once(cluster: &Cluster, peer: &dyn Peer) -> Result<(), Error> {
    if cluster.store.beat(cluster.node.id()).await? {
        cluster.node.state().pulse.felt(Instant::now(), cluster.node.lease);
    } else {
        tracing::warn!("this node was expelled: dropping what it executes and joining again under a new id");
        join(cluster, cluster.ids.node()).await?;
        peer.expelled();
    }
    if cluster.shared {
        if cluster.node.is_steady() {
            cluster.store.give_up_silent().await?;
        }
        if refresh(cluster).await? {
            peer.share_changed();
        }
    }
    Ok(())
}

/// Reads which nodes are alive. True if this node's share changed.
pub async fn refresh(cluster: &Cluster) -> Result<bool, Error> {
    Ok(cluster.node.learn(&cluster.store.nodes().await?))
}

/// The name of this machine.
pub fn host_name() -> String {
    let named = std::env::var("HOSTNAME").ok();
    let read = || std::fs::read_to_string("/etc/hostname").ok();
    let name = named.or_else(read).map(|name| name.trim().to_string());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "stepwell".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive(nodes: &[i64]) -> Vec<NodeId> {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    #[test]
    fn every_run_is_looked_after_by_exactly_one_of_those_alive() {
        let nodes = alive(&[3, 7, 12]);
        let shares: Vec<Share> = nodes
            .iter()
            .map(|node| place(&nodes, *node).expect("it is alive"))
            .map(|(index, of)| Share { index, of, overdue: Time(0) })
            .collect();
        for run in 0..200 {
            assert_eq!(shares.iter().filter(|share| share.has(RunId(run))).count(), 1, "run {run}");
        }
        assert_eq!(place(&nodes, NodeId(8)), None);
    }

    #[test]
    fn who_is_alone_has_everything() {
        let node = Node::new(NodeId(5), "one".into(), 1, Duration::from_secs(10));
        assert_eq!(node.share(Time(9_000)), Share::ALL);
        node.state().place = place(&alive(&[2, 5]), NodeId(5)).expect("it is alive");
        assert_eq!(node.share(Time(9_000)), Share { index: 1, of: 2, overdue: Time(8_000) });
        assert!(!node.is_first() && node.has(RunId(1)) && !node.has(RunId(2)));
    }

    #[test]
    fn a_node_is_steady_after_a_lease_of_beats_without_a_gap() {
        let lease = Duration::from_secs(10);
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let beats = |pulse: &mut Pulse, from: u64, to: u64| {
            (from..=to).step_by(2).for_each(|second| pulse.felt(at(second), lease));
        };
        let mut pulse = Pulse::default();
        assert!(!pulse.is_steady(at(0), lease));
        beats(&mut pulse, 0, 8);
        assert!(!pulse.is_steady(at(9), lease));
        beats(&mut pulse, 10, 10);
        assert!(pulse.is_steady(at(10), lease));
        // It slept, and has not said since that it is there.
        assert!(!pulse.is_steady(at(30), lease));
        // One beat does not tell what was in between.
        beats(&mut pulse, 30, 38);
        assert!(!pulse.is_steady(at(39), lease));
        beats(&mut pulse, 40, 40);
        assert!(pulse.is_steady(at(40), lease));
        pulse.missed();
        beats(&mut pulse, 41, 50);
        assert!(!pulse.is_steady(at(50), lease));
    }
}
