//! Membership of this node in the cluster: it joins, sends heartbeats, and reads which nodes are alive and which share
//! of the runs it owns.
//!
//! A node that sends no heartbeat for longer than its lease is expelled: the others take over the work that the store
//! assigns to it. It notices at its next heartbeat. It then joins under a new id, so that nothing is mistaken for work
//! claimed under the previous id, and drops the attempts it executes. Work in progress at that moment resolves itself:
//!
//! - A report, or any other message, is planned on the run as it stands. If the attempt was taken over, its number is
//!   stale and the report is ignored; if not, the report counts and there is nothing left to take over.
//! - A commit or a claim that still names the old id leaves attempts with a dead node: orphans, which any node can take
//!   over. They are not started here: one may have been started and dropped already, and an attempt is executed once.
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

/// Heartbeats within a lease.
const BEATS: u32 = 5;
/// Heartbeats attempted within a lease while the store does not respond.
const TRIES: u32 = 50;
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// Any node fires a timer that is this late.
const OVERDUE: Millis = Millis(1_000);

pub struct Node {
    id: AtomicI64,
    name: String,
    slots: u32,
    lease: Duration,
    state: Mutex<State>,
    /// Notified when a node has left or was expelled: its work must be taken over.
    pub fewer: Notify,
}

/// The position of a node among those alive, ordered by id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Position {
    index: u32,
    of: u32,
}

struct State {
    pulse: Pulse,
    alive: Vec<NodeId>,
    position: Position,
}

impl Node {
    pub fn new(id: NodeId, name: String, slots: u32, lease: Duration) -> Node {
        let state = State { pulse: Pulse::default(), alive: Vec::new(), position: Position { index: 0, of: 1 } };
        Node { id: AtomicI64::new(id.0), name, slots, lease, state: Mutex::new(state), fewer: Notify::new() }
    }

    pub fn id(&self) -> NodeId {
        NodeId(self.id.load(Ordering::SeqCst))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock on the node")
    }

    /// The share of the runs that this node owns.
    pub fn share(&self, now: Time) -> Share {
        match self.state().position {
            Position { of: 1, .. } => Share::ALL,
            Position { index, of } => Share { index, of, overdue: Time(now.0 - OVERDUE.0 as i64) },
        }
    }

    /// Whether this node does the periodic work that only one node has to do.
    pub fn is_first(&self) -> bool {
        self.state().position.index == 0
    }

    /// Whether this node owns the run.
    pub fn has(&self, run: RunId) -> bool {
        self.share(Time(0)).has(run)
    }

    /// Whether this node may expel others.
    pub fn is_steady(&self) -> bool {
        self.state().pulse.is_steady(Instant::now(), self.lease)
    }

    /// Takes over a list of the nodes that are alive. Returns true if this node's share changed.
    fn update(&self, nodes: &[NodeRow]) -> bool {
        let alive: Vec<NodeId> = nodes.iter().map(|row| row.node.id).collect();
        let mut state = self.state();
        // This node was just expelled: the next heartbeat handles that.
        let Some(position) = position(&alive, self.id()) else { return false };
        let some_left = state.alive.iter().any(|node| !alive.contains(node));
        let changed = position != state.position;
        (state.alive, state.position) = (alive, position);
        drop(state);
        if some_left {
            self.fewer.notify_one();
        }
        changed
    }
}

fn position(alive: &[NodeId], node: NodeId) -> Option<Position> {
    let index = alive.iter().filter(|other| **other < node).count() as u32;
    alive.contains(&node).then_some(Position { index, of: alive.len() as u32 })
}

/// Since when all heartbeats have succeeded.
#[derive(Default)]
struct Pulse {
    since: Option<Instant>,
    last: Option<Instant>,
}

impl Pulse {
    fn succeeded(&mut self, now: Instant, lease: Duration) {
        // A heartbeat that took long or was sent late proves nothing about the time in between.
        if self.last.is_none_or(|last| now - last > lease / 2) {
            self.since = None;
        }
        self.since.get_or_insert(now);
        self.last = Some(now);
    }

    fn failed(&mut self) {
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
    cluster.node.state().pulse.succeeded(Instant::now(), cluster.node.lease);
    cluster.node.id.store(id.0, Ordering::SeqCst);
    Ok(())
}

/// Sends heartbeats until the engine stops.
pub async fn beat(cluster: Arc<Cluster>, peer: Arc<dyn Peer>) {
    let lease = cluster.node.lease;
    while !cluster.stop.is_cancelled() {
        let answer = tokio::time::timeout(lease / 2, beat_once(&cluster, &*peer)).await;
        let answer = answer.unwrap_or_else(|_| Err(Error::Unavailable("the store does not respond".into())));
        let pause = match answer {
            Ok(()) => lease / BEATS,
            Err(error) => {
                cluster.node.state().pulse.failed();
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
        cluster.node.state().pulse.succeeded(Instant::now(), cluster.node.lease);
    } else {
        tracing::warn!("this node was expelled: dropping its attempts and joining again under a new id");
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
    Ok(cluster.node.update(&cluster.store.nodes().await?))
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
    fn every_run_is_owned_by_exactly_one_live_node() {
        let nodes = alive(&[3, 7, 12]);
        let shares: Vec<Share> = nodes
            .iter()
            .map(|node| position(&nodes, *node).expect("it is alive"))
            .map(|Position { index, of }| Share { index, of, overdue: Time(0) })
            .collect();
        for run in 0..200 {
            assert_eq!(shares.iter().filter(|share| share.has(RunId(run))).count(), 1, "run {run}");
        }
        assert_eq!(position(&nodes, NodeId(8)), None);
    }

    #[test]
    fn a_single_node_owns_all_runs() {
        let node = Node::new(NodeId(5), "one".into(), 1, Duration::from_secs(10));
        assert_eq!(node.share(Time(9_000)), Share::ALL);
        node.state().position = position(&alive(&[2, 5]), NodeId(5)).expect("it is alive");
        assert_eq!(node.share(Time(9_000)), Share { index: 1, of: 2, overdue: Time(8_000) });
        assert!(!node.is_first() && node.has(RunId(1)) && !node.has(RunId(2)));
    }

    #[test]
    fn a_node_is_steady_after_a_lease_of_heartbeats_without_a_gap() {
        let lease = Duration::from_secs(10);
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let beats = |pulse: &mut Pulse, from: u64, to: u64| {
            (from..=to).step_by(2).for_each(|second| pulse.succeeded(at(second), lease));
        };
        let mut pulse = Pulse::default();
        assert!(!pulse.is_steady(at(0), lease));
        beats(&mut pulse, 0, 8);
        assert!(!pulse.is_steady(at(9), lease));
        beats(&mut pulse, 10, 10);
        assert!(pulse.is_steady(at(10), lease));
        // It slept, and has sent no heartbeat since.
        assert!(!pulse.is_steady(at(30), lease));
        // One heartbeat proves nothing about the gap.
        beats(&mut pulse, 30, 38);
        assert!(!pulse.is_steady(at(39), lease));
        beats(&mut pulse, 40, 40);
        assert!(pulse.is_steady(at(40), lease));
        pulse.failed();
        beats(&mut pulse, 41, 50);
        assert!(!pulse.is_steady(at(50), lease));
    }
}
