//! Stepwell's durable workflow engine inside your program.
//!
//! You give it a directory or a PostgreSQL database, and async functions as tools. It executes workflows whose steps call
//! those tools, and keeps every decision on disk: after a crash, the next start continues every run where it was.
//!
//! ```
//! use serde_json::{Value, json};
//! use stepwell_embedded::{Call, Engine, RunStatus, ToolError};
//!
//! async fn charge(call: Call) -> Result<Value, ToolError> {
//!     // The same for all attempts of a step, so that a payment service can recognise a repetition.
//!     let key = &call.idempotency_key;
//!     Ok(json!({"id": format!("payment of {} cents", call.args["cents"]), "unique": key}))
//! }
//!
//! # async fn example(directory: &std::path::Path) -> Result<(), stepwell_embedded::Error> {
//! let engine = Engine::builder().tool("charge", charge).open(directory).await?;
//! engine.define("name: order\ntasks: {pay: {tool: charge, args: {cents: '{{input.cents}}'}}}").await?;
//! let run = engine.run("order", json!({"cents": 500})).await?;
//! assert_eq!(run.status, RunStatus::Completed);
//! engine.shutdown().await;
//! # Ok(())
//! # }
//! # let directory = tempfile::tempdir().unwrap();
//! # tokio::runtime::Runtime::new().unwrap().block_on(example(directory.path())).unwrap();
//! ```
//!
//! **Definitions** are YAML or JSON, as written for the server (`docs/definitions.md`).
//! Steps can be tools, HTTP requests, queries, sleeps, approvals, waits for webhooks, loops and other workflows. Steps of
//! kind `javascript` need a program that evaluates code: see [`Builder::javascript`].
//!
//! **Tools** are called at least once: an attempt that a crash cut off is made again, unless the step is `at_most_once`. A
//! tool returns a [`ToolError`]; a retryable one is tried again as the step says.
//!
//! **People.** All calls act for the local user. [`Engine::acting_for`] gives an engine that acts for another one: runs are
//! recorded under that name, tools see it as [`Call::user`], and approvals are theirs. The engine does not authenticate
//! anyone; that is up to your program.
//!
//! **One process per directory.** A directory is locked while an engine has it open. Several processes can share a
//! PostgreSQL database; they divide the work. `stepwell` commands read a directory or database that a program uses:
//! `stepwell runs --data DIR`.
//!
//! **Runtime and TLS.** The engine needs a multi-threaded tokio runtime with time and I/O. HTTP steps and connections to
//! PostgreSQL use the rustls provider that your program has installed. If there is none when an engine opens, it installs
//! ring; install another one before if you want to use it.

#![warn(missing_docs)]

mod builder;
mod engine;
mod error;
mod run;
mod tool;

pub use builder::Builder;
pub use engine::{Answer, Changes, Engine};
pub use error::Error;
pub use run::{Approval, Event, Run, RunStatus, Step};
pub use tool::{Call, ToolError, ToolSpec};
