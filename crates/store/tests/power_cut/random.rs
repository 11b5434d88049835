//! A small seeded generator (SplitMix64), so that a seed gives the same cuts independently of libraries.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A generator for a purpose: its numbers do not depend on how many others have drawn.
    pub fn fork(seed: u64, salt: u64) -> Random {
        let mut random = Random(seed ^ salt.wrapping_mul(0xA076_1D64_78BD_642F));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number less than `end`, which must not be zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < usize::from(chance)
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}
