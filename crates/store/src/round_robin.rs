//! Turns of organisations, the same for every database.

use crate::OrgId;
use std::collections::BTreeMap;

/// The first job of each organisation, then the second of each, and so on. The oldest job stays the first one, and the
/// jobs of an organisation keep their order.
pub fn in_turns<T>(jobs: impl Iterator<Item = T>, org: impl Fn(&T) -> Option<OrgId>) -> impl Iterator<Item = T> {
    let mut turns: BTreeMap<Option<OrgId>, usize> = BTreeMap::new();
    let numbered = jobs.map(|job| {
        let turn = turns.entry(org(&job)).or_default();
        *turn += 1;
        (*turn, job)
    });
    let mut jobs: Vec<(usize, T)> = numbered.collect();
    jobs.sort_by_key(|(turn, _)| *turn);
    jobs.into_iter().map(|(_, job)| job)
}

/// What an organisation asks for.
pub struct Queue<T> {
    /// How many attempts of the organisation the node executes already.
    pub held: u32,
    pub ready: Vec<T>,
}

/// Returns up to `limit` items. The queue with the fewest items, counting those already held, is always next, so that
/// the queues end up with equal shares.
pub fn fewest_first<T>(queues: Vec<Queue<T>>, limit: usize) -> Vec<T> {
    let turns = queues.into_iter().flat_map(|queue| (u64::from(queue.held)..).zip(queue.ready));
    let mut turns: Vec<(u64, T)> = turns.collect();
    // Stable: queues with equally many items keep their order.
    turns.sort_by_key(|(turn, _)| *turn);
    turns.truncate(limit);
    turns.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::{Queue, fewest_first};

    fn check<const N: usize>(queues: [(u32, &[u8]); N], limit: usize, expected: &[u8]) {
        let queues = queues.map(|(held, ready)| Queue { held, ready: ready.to_vec() });
        assert_eq!(fewest_first(queues.into(), limit), expected);
    }

    #[test]
    fn a_long_list_does_not_starve_a_short_one() {
        check([(0, &[1, 2, 3, 4]), (0, &[10]), (0, &[])], 4, &[1, 10, 2, 3]);
        check([(0, &[1, 2]), (0, &[10, 11])], 1, &[1]);
        check([], 3, &[]);
    }

    #[test]
    fn an_organisation_that_executes_much_waits_for_the_others_to_catch_up() {
        check([(2, &[1, 2, 3]), (0, &[10, 11, 12])], 4, &[10, 11, 1, 12]);
        check([(9, &[1]), (1, &[10])], 1, &[10]);
        check([(u32::MAX, &[1, 2]), (0, &[10])], 9, &[10, 1, 2]);
    }
}
