//! The HTTP surface: REST, live events, and what runs beside them. The only crate that knows HTTP.
//!
//! | part | where |
//! | --- | --- |
//! | calls of the API, thin over `engine::commands` | `rest/` |
//! | what they show and take | `view/` |
//! | server-sent events and WebSocket | `live/` |
//! | the tools of agents | `mcp/` |
//! | the dashboard, which `ui/` is built into | `ui.rs` |
//! | who asks, how often, from which page | `auth.rs`, `rates.rs`, `guard.rs` |
//! | bodies and errors | `body.rs`, `error.rs` |
//! | connections | `listen.rs` |
//! | configuration | `config/` |
//! | metrics and traces | `metrics.rs`, `otlp/` |
//! | the first keys | `keys.rs` |
//! | all of it together, from start to stop | `serve.rs` |

mod app;
mod auth;
mod body;
pub mod config;
mod error;
mod guard;
mod keys;
pub mod listen;
pub mod live;
mod mcp;
pub mod metrics;
pub mod otlp;
mod rates;
mod rest;
mod serve;
mod ui;
pub mod view;

pub use app::App;
pub use rates::Rates;
pub use serve::{Served, Server, api, router, serve};
