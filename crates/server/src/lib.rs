//! The HTTP interface: REST, live events, MCP and the dashboard. The only crate that knows HTTP.
//!
//! | part | where |
//! | --- | --- |
//! | handlers of the API, thin over `engine::commands` | `rest/` |
//! | request and response types | `view/` |
//! | the OpenAPI description | `description/` |
//! | server-sent events and WebSocket | `live/` |
//! | tools for agents | `mcp/` |
//! | the dashboard, built from `ui/` | `ui.rs` |
//! | authentication, rate limits, host checks | `auth.rs`, `rates.rs`, `guard.rs` |
//! | unknown query parameters | `parameters.rs` |
//! | bodies and errors | `body.rs`, `error.rs` |
//! | memory and streams divided between organisations | `shares.rs` |
//! | connections | `listen.rs` |
//! | configuration | `config/` |
//! | metrics and traces | `metrics.rs`, `otlp/` |
//! | anchors of the audit trail | `anchor.rs` |
//! | the first API keys | `keys.rs` |
//! | the server from start to shutdown | `serve.rs` |

mod anchor;
mod app;
mod auth;
mod body;
pub mod config;
mod description;
mod error;
mod guard;
mod keys;
pub mod listen;
pub mod live;
mod mcp;
pub mod metrics;
mod near;
pub mod otlp;
mod parameters;
mod rates;
mod rest;
mod serve;
mod shares;
mod ui;
pub mod view;

pub use app::App;
pub use description::{description, is_listed};
pub use error::code_of;
pub use serve::{Served, Server, router, serve};
