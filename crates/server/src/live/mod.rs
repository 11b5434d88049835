//! Live events: what happens to runs, to whoever watches.
//!
//! | part | file |
//! | --- | --- |
//! | who watches, how many may, and the end of it all | `hub.rs` |
//! | the log, read once for all watchers | `follow.rs` |
//! | events as text of a stream, and where a reader stopped | `frames.rs` |
//! | one stream: a bounded way out, its caller's right | `stream.rs` |
//! | the events of a run, of an organisation | `run.rs`, `organisation.rs` |
//! | the socket, and what it says | `socket.rs`, `joined.rs` |
//!
//! What is passed on is only ever a way to be quick: every watcher has a cursor of its own, and reads the store from there
//! when it was too slow or came too late. `docs/live.md` says how it looks from outside.

mod follow;
mod frames;
mod hub;
mod joined;
mod organisation;
mod run;
mod socket;
mod stream;

pub use hub::{Hub, Settings};
pub(crate) use run::find;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(run::run_stream))
        .routes(routes!(organisation::event_stream))
        .routes(routes!(socket::live_socket))
}
