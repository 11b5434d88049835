//! Live events: streams and sockets that report changes of runs.
//!
//! | part | file |
//! | --- | --- |
//! | watchers, their limit and their shutdown | `hub.rs` |
//! | the log, read once for all watchers | `follow.rs` |
//! | events as stream text, and cursors | `frames.rs` |
//! | one stream: bounded buffer, caller's rights | `stream.rs` |
//! | the events of a run, of an organisation | `run.rs`, `organisation.rs` |
//! | the socket and its messages | `socket.rs`, `joined.rs` |
//!
//! Forwarding is only an optimisation: every watcher has its own cursor and reads the store from there if it was too
//! slow or late. The protocol is documented in `docs/live.md`.

mod follow;
mod frames;
mod hub;
mod joined;
mod organisation;
mod run;
mod socket;
mod stream;

pub use hub::{Hub, Settings};
pub(crate) use joined::context;
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
