//! How often a channel is used, and how much goes on at a time: nobody is flooded, and nobody stands in another's way.

use std::collections::HashMap;
use std::hash::Hash;
use stepwell_core::time::{Millis, Time};
use stepwell_store::OrgId;

/// Between two messages through one channel, once it has had as many as it may have at once.
const EVERY: Millis = Millis::SECOND;
const AT_ONCE: u64 = 20;
/// Who would have to wait longer is left out: so many messages help nobody.
const LONGEST: Millis = Millis::from_secs(3_600);
/// A turn that was not used for so long, because nothing ran, is given anew.
const GOOD_FOR: Millis = Millis::from_secs(30);

/// Messages under way at a time: through one channel, of one organisation, and in all.
const OF_CHANNEL: usize = 4;
const OF_ORG: usize = 32;
const OF_ALL: usize = 256;
/// Channels that are remembered.
const MOST: usize = 10_000;

/// When something may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    Now,
    At(Time),
    /// There is too much before it.
    Never,
}

#[derive(Default)]
pub struct Turns {
    /// When the channel will have had its share of all that was promised.
    next: HashMap<String, Time>,
}

impl Turns {
    /// A turn for a message, which may have been given one before.
    pub fn of(&mut self, channel: &str, given: Option<Time>, now: Time) -> Turn {
        if given.is_some_and(|turn| turn <= now && now.since(turn) <= GOOD_FOR) {
            return Turn::Now;
        }
        if self.next.len() >= MOST {
            self.next.retain(|_, next| *next > now);
        }
        let next = self.next.entry(channel.to_string()).or_insert(now);
        *next = (*next).max(now);
        let turn = Time(next.0 - (EVERY.0 * (AT_ONCE - 1)) as i64);
        if turn.since(now) > LONGEST {
            return Turn::Never;
        }
        *next = *next + EVERY;
        if turn <= now { Turn::Now } else { Turn::At(turn) }
    }
}

/// What is under way.
#[derive(Default)]
pub struct Busy {
    all: usize,
    channels: HashMap<String, usize>,
    orgs: HashMap<OrgId, usize>,
}

impl Busy {
    pub fn is_full(&self) -> bool {
        self.all >= OF_ALL
    }

    pub fn has_room(&self, org: OrgId, channel: &str) -> bool {
        let under_way = self.channels.get(channel).copied().unwrap_or_default();
        under_way < OF_CHANNEL && self.orgs.get(&org).copied().unwrap_or_default() < OF_ORG
    }

    pub fn begin(&mut self, org: OrgId, channel: &str) {
        self.all += 1;
        *self.channels.entry(channel.to_string()).or_default() += 1;
        *self.orgs.entry(org).or_default() += 1;
    }

    pub fn end(&mut self, org: OrgId, channel: &str) {
        self.all -= 1;
        one_less(&mut self.channels, &channel.to_string());
        one_less(&mut self.orgs, &org);
    }
}

fn one_less<K: Hash + Eq>(counts: &mut HashMap<K, usize>, of: &K) {
    match counts.get_mut(of) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(counts.remove(of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    #[test]
    fn a_channel_takes_some_at_once_and_then_one_after_the_other() {
        let mut turns = Turns::default();
        for _ in 0..AT_ONCE {
            assert_eq!(turns.of("a", None, NOW), Turn::Now);
        }
        assert_eq!(turns.of("a", None, NOW), Turn::At(NOW + EVERY));
        assert_eq!(turns.of("a", None, NOW), Turn::At(NOW + Millis(2 * EVERY.0)));
        assert_eq!(turns.of("b", None, NOW), Turn::Now);
    }

    #[test]
    fn a_turn_counts_when_it_comes_and_not_long_after() {
        let mut turns = Turns::default();
        (0..AT_ONCE).for_each(|_| {
            turns.of("a", None, NOW);
        });
        let Turn::At(turn) = turns.of("a", None, NOW) else { panic!("there was no turn left") };
        assert_eq!(turns.of("a", Some(turn), turn), Turn::Now);
        // Everything whose turn came while nothing ran would come at once.
        let later = turn + Millis::from_secs(3_600);
        let all: Vec<Turn> = (0..=AT_ONCE).map(|_| turns.of("a", Some(turn), later)).collect();
        assert_eq!(all.last(), Some(&Turn::At(later + EVERY)));
    }

    #[test]
    fn what_would_have_to_wait_for_too_long_is_left_out() {
        let mut turns = Turns::default();
        let all: Vec<Turn> = (0..5_000).map(|_| turns.of("a", None, NOW)).collect();
        assert_eq!(all.last(), Some(&Turn::Never));
        assert_eq!(all.iter().filter(|turn| **turn != Turn::Never).count() as u64, AT_ONCE + LONGEST.0 / EVERY.0);
    }

    #[test]
    fn a_channel_that_hangs_leaves_room_for_others() {
        let mut busy = Busy::default();
        let org = OrgId(1);
        (0..OF_CHANNEL).for_each(|_| busy.begin(org, "dead"));
        assert!(!busy.has_room(org, "dead") && busy.has_room(org, "alive") && !busy.is_full());
        busy.end(org, "dead");
        assert!(busy.has_room(org, "dead"));
        (0..OF_ORG).for_each(|n| busy.begin(org, &n.to_string()));
        assert!(!busy.has_room(org, "alive") && busy.has_room(OrgId(2), "alive"));
    }
}
