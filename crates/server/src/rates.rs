//! How often one caller may ask: a bucket of requests for each, filled again as time goes by.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Callers remembered at the most.
const MOST: usize = 20_000;
/// Wrong keys that one address may try at once, and per second after that.
const WRONG: (f64, f64) = (20.0, 5.0);

pub struct Rates {
    /// How many at once, and per second.
    by_key: Option<(f64, f64)>,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    pub fn new(per_second: Option<NonZeroU32>, burst: Option<NonZeroU32>) -> Rates {
        let by_key = per_second.zip(burst).map(|(rate, burst)| (f64::from(burst.get()), f64::from(rate.get())));
        Rates { by_key, buckets: Mutex::default() }
    }

    /// Whether the caller may ask now; if not, how long to wait.
    pub fn ask(&self, caller: &str) -> Result<(), Duration> {
        self.by_key.map_or(Ok(()), |rate| self.take(format!("key {caller}"), rate, Instant::now()))
    }

    /// The same for an address that shows wrong keys.
    pub fn wrong_key(&self, address: &str) -> Result<(), Duration> {
        self.take(format!("wrong {address}"), WRONG, Instant::now())
    }

    fn take(&self, who: String, (most, per_second): (f64, f64), now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().expect("nothing panics while it holds the buckets");
        if buckets.len() > MOST {
            buckets.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(60));
        }
        if buckets.len() > 2 * MOST {
            buckets.clear();
        }
        let bucket = buckets.entry(who).or_insert(Bucket { left: most, at: now });
        let passed = now.duration_since(bucket.at).as_secs_f64();
        *bucket = Bucket { left: (bucket.left + passed * per_second).min(most), at: now };
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.left) / per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_may_ask_as_often_as_the_bucket_is_filled_and_others_are_not_touched() {
        let rates = Rates::new(NonZeroU32::new(2), NonZeroU32::new(3));
        let rate = rates.by_key.unwrap();
        let now = Instant::now();
        let take = |who: &str, millis: u64| rates.take(who.into(), rate, now + Duration::from_millis(millis));
        assert!((0..3).all(|_| take("ann", 0).is_ok()));
        assert_eq!(take("ann", 0), Err(Duration::from_millis(500)));
        assert!(take("bob", 0).is_ok());
        assert!(take("ann", 500).is_ok());
        assert!(take("ann", 500).is_err());
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let rates = Rates::new(None, None);
        assert!((0..10_000).all(|_| rates.ask("ann").is_ok()));
    }
}
