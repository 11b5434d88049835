//! Request and response types of the API. The command line uses them too, as a client.

mod approval;
mod channel;
mod event;
mod graph;
mod list;
mod node;
mod people;
mod policy;
mod problem;
mod query;
mod review;
mod run;
mod runs;
mod secret;
mod server;
mod sets;
mod tool;
mod workflow;

pub use approval::*;
pub use channel::*;
pub use event::*;
pub use graph::*;
pub use list::*;
pub use node::*;
pub use people::*;
pub use policy::*;
pub use problem::*;
pub use query::*;
pub use review::*;
pub use run::*;
pub use runs::*;
pub use secret::*;
pub use server::*;
pub use sets::*;
pub use tool::*;
pub use workflow::*;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stepwell_core::time::{Millis, Time};
use utoipa::ToSchema;

/// A response: the result is in `data`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Data<T> {
    pub data: T,
}

/// An instant, written as `2026-02-22T10:00:00Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-02-22T10:00:00Z")]
pub struct Instant(pub Time);

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        let text = String::deserialize(deserializer)?;
        // A plain number is not an instant.
        let time = Time::parse(&text).filter(|_| text.contains('-'));
        time.map(Instant).ok_or_else(|| serde::de::Error::custom("this is not an instant such as 2026-02-22T10:00:00Z"))
    }
}

/// A duration, written as `90s`, `10m` or `1h30m`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ToSchema)]
#[schema(value_type = String, example = "10m")]
pub struct Length(pub Millis);

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        let text = String::deserialize(deserializer)?;
        // A plain number has no unit.
        let length = Millis::parse(&text).filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()));
        length.map(Length).ok_or_else(|| serde::de::Error::custom("this is not a duration such as 10m"))
    }
}

impl From<Time> for Instant {
    fn from(time: Time) -> Instant {
        Instant(time)
    }
}
