//! Injects random faults: one task per node, and one for the database.

use crate::Trouble;
use crate::chance::Chance;
use crate::node::{LEASE, Node};
use rustix::process::Signal;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use stepwell_testing::Cluster;

/// One of each must happen in a run of the usual length. The villains of three nodes begin two kinds apart.
pub const KINDS: [&str; 6] =
    ["is killed", "stands still", "is cut off", "hears nothing", "is asked to stop", "the database loses its power"];

/// A readable log of the faults.
#[derive(Default)]
pub struct Deeds(Mutex<Vec<String>>);

impl Deeds {
    fn note(&self, begun: Instant, what: &str) {
        self.0.lock().unwrap().push(format!("{:6.2} {what}", begun.elapsed().as_secs_f64()));
    }

    pub fn told(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// The kinds of which there was none.
    pub fn missing(&self) -> Vec<&'static str> {
        let told = self.told();
        KINDS.into_iter().filter(|kind| !told.contains(kind)).collect()
    }
}

pub struct Villain<'a> {
    pub chance: Chance,
    pub begun: Instant,
    pub until: Instant,
    pub deeds: &'a Deeds,
    pub trouble: &'a Trouble,
}

impl Villain<'_> {
    /// Time is what villains need: nothing is awaited here.
    fn rest(&mut self, least: u64, most: u64) {
        std::thread::sleep(self.chance.between(least, most));
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn note(&self, what: &str) {
        self.deeds.note(self.begun, what);
    }

    /// In the end the node runs and reaches its database. The first deed is given, and every kind is done once before any
    /// is repeated.
    pub fn haunt(mut self, node: &Node, first: usize) {
        let beyond = u64::try_from(LEASE.as_millis()).unwrap();
        let mut kinds = (first..first + 6).map(|kind| kind % 6);
        loop {
            self.rest(500, 4_000);
            if self.is_over() {
                return;
            }
            if node.has_died() {
                self.trouble.note(format!("{} has ended by itself\n{}", node.name, node.last_words()));
                return node.start();
            }
            let kind = kinds.next().unwrap_or_else(|| self.chance.below(6));
            match kind {
                0 => {
                    self.note(&format!("{} is killed", node.name));
                    node.kill();
                    self.rest(10, 2 * beyond);
                    node.start();
                    self.note(&format!("{} is there again", node.name));
                }
                1 => {
                    self.note(&format!("{} stands still", node.name));
                    node.signal(Signal::STOP);
                    self.rest(beyond / 4, beyond * 3);
                    node.signal(Signal::CONT);
                    self.note(&format!("{} goes on", node.name));
                }
                2 => {
                    self.note(&format!("{} is cut off", node.name));
                    node.proxy.cut();
                    self.rest(100, beyond * 2);
                    node.proxy.heal();
                    self.note(&format!("{} is connected again", node.name));
                }
                3 | 4 => {
                    self.note(&format!("{} hears nothing", node.name));
                    node.proxy.silence();
                    self.rest(100, beyond * 3);
                    // Held bytes may still be delivered, or be lost.
                    if self.chance.below(2) == 0 {
                        node.proxy.cut();
                    }
                    node.proxy.heal();
                    self.note(&format!("{} hears again", node.name));
                }
                _ => {
                    self.note(&format!("{} is asked to stop", node.name));
                    if let Err(wrong) = node.stop() {
                        self.trouble.note(format!("{wrong}\n{}", node.last_words()));
                    }
                    node.start();
                    self.note(&format!("{} is there again", node.name));
                }
            }
        }
    }

    pub fn haunt_database(mut self, cluster: &Cluster) {
        loop {
            let wait = self.chance.between(3_000, 11_000);
            if Instant::now() + wait + Duration::from_secs(1) >= self.until {
                return;
            }
            std::thread::sleep(wait);
            self.note("the database loses its power");
            cluster.restart_immediate();
            self.note("the database is there again");
        }
    }
}
