//! Seeded random numbers.

use std::time::Duration;

#[derive(Clone)]
pub struct Chance(u64);

impl Chance {
    /// Each part of the test has numbers of its own, so that how fast one goes changes nothing for another.
    pub fn new(seed: u64, part: u64) -> Chance {
        let mut chance = Chance(seed ^ part.wrapping_mul(0xd1b5_4a32_d192_ed03));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least))
    }
}
