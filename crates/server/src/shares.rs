//! Divides a capacity, such as memory for request bodies or places of live streams, between organisations.
//!
//! An organisation alone may use all of it. As soon as another one needs some within its equal share, holds of the
//! organisation with the most are reclaimed: a body still being received is refused, a stream is ended. Holds that can
//! no longer be given back, such as the body of a request being handled, are settled; a reserve that large users cannot
//! take bridges the time until they are released.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use stepwell_store::OrgId;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

/// What a hold is charged to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Payer {
    Organisation(OrgId),
    /// A caller that is not known yet.
    Address(Option<IpAddr>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    pub total: u64,
    /// The part that only payers with no more than this in all can take.
    pub reserve: u64,
    /// Maximum of one payer.
    pub most: u64,
}

/// Why nothing more was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Full,
    /// Another payer needed what this hold had.
    Reclaimed,
}

pub struct Shares {
    capacity: Capacity,
    state: Mutex<State>,
    released: Notify,
}

#[derive(Default)]
struct State {
    used: u64,
    /// Only payers that hold something.
    used_by: BTreeMap<Payer, u64>,
    /// Numbers holds, and orders them by their last growth.
    clock: u64,
    holds: BTreeMap<u64, Entry>,
}

struct Entry {
    payer: Payer,
    amount: u64,
    /// When it last grew.
    grown: u64,
    stage: Stage,
    reclaimed: watch::Sender<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Can be reclaimed.
    Open,
    /// The same, and waits for more.
    Waiting,
    Settled,
}

/// A part of the capacity, released when dropped.
pub struct Hold {
    shares: Arc<Shares>,
    id: u64,
    reclaimed: watch::Receiver<bool>,
}

impl Shares {
    pub fn new(capacity: Capacity) -> Arc<Shares> {
        Arc::new(Shares { capacity, state: Mutex::default(), released: Notify::new() })
    }

    /// A hold of nothing yet.
    pub fn enter(self: &Arc<Shares>, payer: Payer) -> Hold {
        let (sender, reclaimed) = watch::channel(false);
        let mut state = self.state();
        let id = state.tick();
        let entry = Entry { payer, amount: 0, grown: id, stage: Stage::Open, reclaimed: sender };
        state.holds.insert(id, entry);
        Hold { shares: self.clone(), id, reclaimed }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the shares")
    }
}

impl Hold {
    /// Takes `more` if that is possible now.
    pub fn try_grow(&self, more: u64) -> Result<(), Refused> {
        let mut state = self.shares.state();
        let before = state.holds.len();
        let granted = state.grow(self.id, more, self.shares.capacity);
        let reclaimed = state.holds.len() < before;
        drop(state);
        if reclaimed {
            // One that was reclaimed may be waiting.
            self.shares.released.notify_waiters();
        }
        granted
    }

    /// Takes `more`, and waits for it if needed.
    pub async fn grow(&self, more: u64, patience: Duration) -> Result<(), Refused> {
        let deadline = Instant::now() + patience;
        loop {
            let released = self.shares.released.notified();
            tokio::pin!(released);
            // Registered first, so that a release in between is not missed.
            released.as_mut().enable();
            let granted = self.try_grow(more);
            if granted != Err(Refused::Full) {
                return granted;
            }
            if timeout_at(deadline, released).await.is_err() {
                return granted;
            }
        }
    }

    /// Resolves when another payer needs it. What it had no longer counts then.
    pub fn reclaimed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut reclaimed = self.reclaimed.clone();
        async move {
            // The sender is gone only once it was reclaimed, or with the hold.
            let _ = reclaimed.wait_for(|reclaimed| *reclaimed).await;
        }
    }

    pub fn is_reclaimed(&self) -> bool {
        *self.reclaimed.borrow()
    }

    /// From now on it is held until it is dropped.
    pub fn settle(&self) -> Result<(), Refused> {
        let mut state = self.shares.state();
        let entry = state.holds.get_mut(&self.id).ok_or(Refused::Reclaimed)?;
        entry.stage = Stage::Settled;
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.shares.state().release(self.id);
        self.shares.released.notify_waiters();
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn grow(&mut self, id: u64, more: u64, capacity: Capacity) -> Result<(), Refused> {
        loop {
            let payer = self.holds.get(&id).ok_or(Refused::Reclaimed)?.payer.clone();
            let own = self.used_by.get(&payer).copied().unwrap_or_default() + more;
            let ceiling = if own <= capacity.reserve { capacity.total } else { capacity.total - capacity.reserve };
            if own <= capacity.most && self.used + more <= ceiling {
                let now = self.tick();
                if let Some(entry) = self.holds.get_mut(&id) {
                    entry.amount += more;
                    entry.grown = now;
                    if entry.stage == Stage::Waiting {
                        entry.stage = Stage::Open;
                    }
                }
                self.used += more;
                self.used_by.insert(payer, own);
                return Ok(());
            }
            let others = self.used_by.keys().filter(|other| **other != payer).count() as u64;
            let share = capacity.total / (others + 1);
            let victim = if own <= share.min(capacity.most) { self.of_the_largest(&payer, share) } else { None };
            if let Some(victim) = victim.or_else(|| self.stuck(id, &payer)) {
                self.reclaim(victim);
                continue;
            }
            return Err(Refused::Full);
        }
    }

    /// Of the other payer with the most, and more than a share: the hold that has not grown for longest.
    fn of_the_largest(&self, except: &Payer, share: u64) -> Option<u64> {
        let others = self.used_by.iter().filter(|(payer, amount)| *payer != except && **amount > share);
        let others = others.filter(|(payer, _)| self.open(payer).next().is_some());
        let (payer, _) = others.max_by_key(|(_, amount)| **amount)?;
        self.open(payer).min_by_key(|(_, entry)| entry.grown).map(|(id, _)| id)
    }

    fn open<'a>(&'a self, payer: &'a Payer) -> impl Iterator<Item = (u64, &'a Entry)> {
        let holds = self.holds.iter().filter(move |(_, entry)| entry.payer == *payer && entry.amount > 0);
        holds.filter(|(_, entry)| entry.stage != Stage::Settled).map(|(id, entry)| (*id, entry))
    }

    /// Marks the hold as waiting. If all holds of its payer wait for each other, returns the youngest.
    fn stuck(&mut self, id: u64, payer: &Payer) -> Option<u64> {
        let entry = self.holds.get_mut(&id).filter(|entry| entry.stage == Stage::Open);
        if let Some(entry) = entry {
            entry.stage = Stage::Waiting;
        }
        let mut own = self.holds.values().filter(|entry| entry.payer == *payer && entry.amount > 0);
        let stuck = own.all(|entry| entry.stage == Stage::Waiting);
        let several = self.open(payer).nth(1).is_some();
        (stuck && several).then(|| self.open(payer).last().map(|(id, _)| id)).flatten()
    }

    fn reclaim(&mut self, id: u64) {
        if let Some(entry) = self.release(id) {
            entry.reclaimed.send_replace(true);
        }
    }

    fn release(&mut self, id: u64) -> Option<Entry> {
        let entry = self.holds.remove(&id)?;
        self.used -= entry.amount;
        if let Some(amount) = self.used_by.get_mut(&entry.payer) {
            *amount -= entry.amount;
            if *amount == 0 {
                self.used_by.remove(&entry.payer);
            }
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: Payer = Payer::Organisation(OrgId(1));
    const BOB: Payer = Payer::Organisation(OrgId(2));
    const CAT: Payer = Payer::Organisation(OrgId(3));

    fn shares(total: u64, reserve: u64) -> Arc<Shares> {
        Shares::new(Capacity { total, reserve, most: total })
    }

    fn taken(shares: &Arc<Shares>, payer: Payer, amount: u64) -> Result<Hold, Refused> {
        let hold = shares.enter(payer);
        hold.try_grow(amount).map(|()| hold)
    }

    #[test]
    fn a_payer_alone_may_use_all_and_gives_back_when_another_needs_its_share() {
        let shares = shares(4, 0);
        let ann: Vec<Hold> = (0..4).map(|_| taken(&shares, ANN, 1).unwrap()).collect();
        assert_eq!(taken(&shares, ANN, 1).err(), Some(Refused::Full));
        let bob: Vec<Hold> = (0..2).map(|_| taken(&shares, BOB, 1).unwrap()).collect();
        assert_eq!(ann.iter().map(Hold::is_reclaimed).collect::<Vec<_>>(), [true, true, false, false]);
        assert_eq!(ann[0].try_grow(1), Err(Refused::Reclaimed));
        assert_eq!(taken(&shares, BOB, 1).err(), Some(Refused::Full), "its share is two");
        let cat = taken(&shares, CAT, 1).unwrap();
        assert!(!bob[0].is_reclaimed() || !bob[1].is_reclaimed());
        drop((ann, bob, cat));
        assert_eq!(shares.state().used, 0);
        assert!(taken(&shares, BOB, 4).is_ok());
    }

    #[test]
    fn the_reserve_is_there_while_all_else_is_settled() {
        let shares = shares(100, 10);
        let ann = taken(&shares, ANN, 90).unwrap();
        assert_eq!(ann.try_grow(1), Err(Refused::Full));
        ann.settle().unwrap();
        let bob = taken(&shares, BOB, 10).unwrap();
        assert_eq!(bob.try_grow(1), Err(Refused::Full));
        assert!(!ann.is_reclaimed());
        drop(ann);
        assert_eq!(bob.try_grow(70), Ok(()));
    }

    #[test]
    fn of_holds_that_wait_for_each_other_the_youngest_gives_way() {
        let shares = shares(10, 0);
        let holds: Vec<Hold> = (0..2).map(|_| taken(&shares, ANN, 5).unwrap()).collect();
        assert_eq!(holds[0].try_grow(3), Err(Refused::Full), "the other may still end");
        assert_eq!(holds[1].try_grow(1), Err(Refused::Reclaimed));
        assert_eq!(holds[0].try_grow(3), Ok(()));
    }

    #[test]
    fn one_payer_has_a_maximum_of_its_own() {
        let shares = Shares::new(Capacity { total: 10, reserve: 0, most: 3 });
        let _ann: Vec<Hold> = (0..3).map(|_| taken(&shares, ANN, 1).unwrap()).collect();
        assert_eq!(taken(&shares, ANN, 1).err(), Some(Refused::Full));
        assert!(taken(&shares, BOB, 1).is_ok());
    }

    #[tokio::test]
    async fn a_hold_waits_for_a_release_and_no_longer_than_it_may() {
        let shares = shares(10, 0);
        let first = taken(&shares, ANN, 10).unwrap();
        first.settle().unwrap();
        let second = shares.enter(ANN);
        assert_eq!(second.grow(1, Duration::ZERO).await, Err(Refused::Full));
        let (grown, ()) = tokio::join!(second.grow(1, Duration::from_secs(3_600)), async { drop(first) });
        assert_eq!(grown, Ok(()));
    }
}
