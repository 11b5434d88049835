//! The rate limit of a channel, and limits on concurrent attempts: no recipient is flooded, and no channel or
//! organisation blocks the others.

use std::collections::HashMap;
use std::hash::Hash;
use stepwell_core::time::{Millis, Time};
use stepwell_store::OrgId;

/// Time between two messages through one channel once its burst is used up.
const INTERVAL: Millis = Millis::SECOND;
/// Messages that one channel may send at once.
const BURST: u64 = 20;
/// A message that would have to wait longer is dropped: so many messages help no reader.
const LONGEST: Millis = Millis::from_secs(3_600);
/// A reserved time that passed this long ago, because no engine ran, is reserved anew.
const VALID_FOR: Millis = Millis::from_secs(30);

/// Concurrent attempts: per channel, per organisation, and in total.
const MAX_PER_CHANNEL: usize = 4;
const MAX_PER_ORG: usize = 32;
const MAX_TOTAL: usize = 256;
/// Channels kept in memory.
const MAX_CHANNELS: usize = 10_000;

/// When a message may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendTime {
    Now,
    At(Time),
    /// Too many messages are ahead of it.
    Never,
}

#[derive(Default)]
pub struct ChannelRates {
    /// For each channel, when all reserved messages will have been sent at the limited rate.
    next: HashMap<String, Time>,
}

impl ChannelRates {
    /// Reserves a time to send a message. `reserved` is the time that an earlier call returned for it.
    pub fn reserve(&mut self, channel: &str, reserved: Option<Time>, now: Time) -> SendTime {
        if reserved.is_some_and(|time| time <= now && now.since(time) <= VALID_FOR) {
            return SendTime::Now;
        }
        if self.next.len() >= MAX_CHANNELS {
            self.next.retain(|_, next| *next > now);
        }
        let next = self.next.entry(channel.to_string()).or_insert(now);
        *next = (*next).max(now);
        let time = Time(next.0 - (INTERVAL.0 * (BURST - 1)) as i64);
        if time.since(now) > LONGEST {
            return SendTime::Never;
        }
        *next = *next + INTERVAL;
        if time <= now { SendTime::Now } else { SendTime::At(time) }
    }
}

/// The number of attempts in flight.
#[derive(Default)]
pub struct InFlightCounts {
    all: usize,
    channels: HashMap<String, usize>,
    orgs: HashMap<OrgId, usize>,
}

impl InFlightCounts {
    pub fn is_full(&self) -> bool {
        self.all >= MAX_TOTAL
    }

    pub fn has_room(&self, org: OrgId, channel: &str) -> bool {
        let in_flight = self.channels.get(channel).copied().unwrap_or_default();
        in_flight < MAX_PER_CHANNEL && self.orgs.get(&org).copied().unwrap_or_default() < MAX_PER_ORG
    }

    pub fn begin(&mut self, org: OrgId, channel: &str) {
        self.all += 1;
        *self.channels.entry(channel.to_string()).or_default() += 1;
        *self.orgs.entry(org).or_default() += 1;
    }

    pub fn end(&mut self, org: OrgId, channel: &str) {
        self.all -= 1;
        decrement(&mut self.channels, &channel.to_string());
        decrement(&mut self.orgs, &org);
    }
}

fn decrement<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(counts.remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000);

    #[test]
    fn a_channel_sends_a_burst_and_then_one_message_per_interval() {
        let mut rates = ChannelRates::default();
        for _ in 0..BURST {
            assert_eq!(rates.reserve("a", None, NOW), SendTime::Now);
        }
        assert_eq!(rates.reserve("a", None, NOW), SendTime::At(NOW + INTERVAL));
        assert_eq!(rates.reserve("a", None, NOW), SendTime::At(NOW + Millis(2 * INTERVAL.0)));
        assert_eq!(rates.reserve("b", None, NOW), SendTime::Now);
    }

    #[test]
    fn a_reserved_time_is_valid_when_it_comes_and_not_long_after() {
        let mut rates = ChannelRates::default();
        (0..BURST).for_each(|_| {
            rates.reserve("a", None, NOW);
        });
        let SendTime::At(time) = rates.reserve("a", None, NOW) else { panic!("the burst was not used up") };
        assert_eq!(rates.reserve("a", Some(time), time), SendTime::Now);
        // Otherwise all messages whose time came while no engine ran would be sent at once.
        let later = time + Millis::from_secs(3_600);
        let all: Vec<SendTime> = (0..=BURST).map(|_| rates.reserve("a", Some(time), later)).collect();
        assert_eq!(all.last(), Some(&SendTime::At(later + INTERVAL)));
    }

    #[test]
    fn a_message_that_would_wait_too_long_is_dropped() {
        let mut rates = ChannelRates::default();
        let all: Vec<SendTime> = (0..5_000).map(|_| rates.reserve("a", None, NOW)).collect();
        assert_eq!(all.last(), Some(&SendTime::Never));
        assert_eq!(all.iter().filter(|time| **time != SendTime::Never).count() as u64, BURST + LONGEST.0 / INTERVAL.0);
    }

    #[test]
    fn a_channel_that_hangs_leaves_room_for_others() {
        let mut counts = InFlightCounts::default();
        let org = OrgId(1);
        (0..MAX_PER_CHANNEL).for_each(|_| counts.begin(org, "dead"));
        assert!(!counts.has_room(org, "dead") && counts.has_room(org, "alive") && !counts.is_full());
        counts.end(org, "dead");
        assert!(counts.has_room(org, "dead"));
        (0..MAX_PER_ORG).for_each(|n| counts.begin(org, &n.to_string()));
        assert!(!counts.has_room(org, "alive") && counts.has_room(OrgId(2), "alive"));
    }
}
