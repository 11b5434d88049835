//! Rate limits: one token bucket per caller.

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of callers tracked.
const MOST: usize = 20_000;
/// For invalid keys from one address.
const WRONG: Rate = Rate { burst: 20.0, per_second: 5.0 };

/// The address of a request's client.
pub fn peer(request: &Extensions) -> Option<IpAddr> {
    request.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())
}

/// A host usually has a whole /64 of IPv6 addresses to choose from.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[derive(Clone, Copy)]
struct Rate {
    burst: f64,
    per_second: f64,
}

pub struct Rates {
    by_key: Option<Rate>,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rates {
    pub fn new(per_second: Option<NonZeroU32>, burst: Option<NonZeroU32>) -> Rates {
        let rate = |(per_second, burst): (NonZeroU32, NonZeroU32)| Rate {
            burst: f64::from(burst.get()),
            per_second: f64::from(per_second.get()),
        };
        Rates { by_key: per_second.zip(burst).map(rate), buckets: Mutex::default() }
    }

    /// Takes a token, or returns how long to wait for one.
    pub fn ask(&self, caller: &str) -> Result<(), Duration> {
        self.by_key.map_or(Ok(()), |rate| self.take(format!("key {caller}"), rate, Instant::now()))
    }

    /// The same for an address that sends invalid keys or tokens.
    pub fn wrong_key(&self, peer: Option<IpAddr>) -> Result<(), Duration> {
        let network = peer.map(|peer| network(peer).to_string()).unwrap_or_default();
        self.take(format!("wrong {network}"), WRONG, Instant::now())
    }

    fn take(&self, who: String, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().expect("nothing panics while it holds the buckets");
        if buckets.len() > MOST {
            buckets.retain(|_, bucket| now.duration_since(bucket.at) < Duration::from_secs(60));
        }
        if buckets.len() > 2 * MOST {
            buckets.clear();
        }
        let bucket = buckets.entry(who).or_insert(Bucket { left: rate.burst, at: now });
        let passed = now.duration_since(bucket.at).as_secs_f64();
        *bucket = Bucket { left: (bucket.left + passed * rate.per_second).min(rate.burst), at: now };
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.left) / rate.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_limited_to_its_bucket_and_others_are_not_affected() {
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
    fn addresses_of_one_ipv6_network_share_their_wrong_guesses() {
        let rates = Rates::new(None, None);
        let wrong = |peer: &str| rates.wrong_key(peer.parse().ok());
        assert!((0..20).all(|n| wrong(&format!("2001:db8:0:1::{n:x}")).is_ok()));
        assert!(wrong("2001:db8:0:1:ffff::1").is_err());
        assert!(wrong("2001:db8:0:2::1").is_ok());
        assert!((0..20).all(|_| wrong("::ffff:192.0.2.1").is_ok()));
        assert!(wrong("192.0.2.1").is_err() && wrong("192.0.2.2").is_ok());
    }

    #[test]
    fn without_a_rate_no_caller_waits() {
        let rates = Rates::new(None, None);
        assert!((0..10_000).all(|_| rates.ask("ann").is_ok()));
    }
}
