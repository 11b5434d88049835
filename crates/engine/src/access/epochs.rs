//! The epochs of organisations' grants, as last seen. Where other processes change them too, for a moment only.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use stepwell_store::OrgId;
use tokio::time::Instant;

/// How long an epoch is believed where others may move it on.
const BELIEVED: Duration = Duration::from_secs(1);

pub struct Epochs {
    shared: bool,
    known: Mutex<BTreeMap<OrgId, Epoch>>,
}

/// What is known of an organisation's epoch, and how often it had to be forgotten.
#[derive(Clone, Copy, Default)]
struct Epoch {
    /// With the time just before it was asked for.
    number: Option<(i64, Instant)>,
    forgotten: u64,
}

/// A question to the store for an epoch.
pub struct Asked {
    org: OrgId,
    at: Instant,
    forgotten: u64,
}

impl Epochs {
    pub fn new(shared: bool) -> Epochs {
        Epochs { shared, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<OrgId, Epoch>> {
        self.known.lock().expect("nothing panics while it holds the epochs")
    }

    /// The epoch, or what to ask the store for.
    pub fn get(&self, org: OrgId) -> Result<i64, Asked> {
        let known = self.known().get(&org).copied().unwrap_or_default();
        let at = Instant::now();
        match known.number {
            Some((number, since)) if !self.shared || at - since < BELIEVED => Ok(number),
            _ => Err(Asked { org, at, forgotten: known.forgotten }),
        }
    }

    /// What the store says. It may have been read just before a change that was made known meanwhile.
    pub fn learn(&self, asked: Asked, number: i64) {
        let mut known = self.known();
        let epoch = known.entry(asked.org).or_default();
        if epoch.forgotten == asked.forgotten {
            epoch.number = Some((number, asked.at));
        }
    }

    pub fn forget(&self, org: OrgId) {
        self.known().entry(org).or_default().forget();
    }

    pub fn forget_all(&self) {
        self.known().values_mut().for_each(Epoch::forget);
    }
}

impl Epoch {
    fn forget(&mut self) {
        *self = Epoch { number: None, forgotten: self.forgotten + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: OrgId = OrgId(1);

    fn learned(shared: bool) -> Epochs {
        let epochs = Epochs::new(shared);
        let asked = epochs.get(ORG).expect_err("nothing is known yet");
        epochs.learn(asked, 7);
        assert_eq!(epochs.get(ORG).ok(), Some(7));
        epochs
    }

    #[tokio::test(start_paused = true)]
    async fn an_epoch_that_others_may_move_on_is_believed_for_a_second() {
        let (shared, own) = (learned(true), learned(false));
        tokio::time::advance(BELIEVED).await;
        assert_eq!(shared.get(ORG).ok(), None);
        assert_eq!(own.get(ORG).ok(), Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_before_a_change_is_not_learned_after_it() {
        for forget in [|epochs: &Epochs| epochs.forget(ORG), |epochs: &Epochs| epochs.forget_all()] {
            let epochs = learned(false);
            forget(&epochs);
            let asked = epochs.get(ORG).expect_err("it was forgotten");
            forget(&epochs);
            epochs.learn(asked, 8);
            assert_eq!(epochs.get(ORG).ok(), None);
        }
    }
}
