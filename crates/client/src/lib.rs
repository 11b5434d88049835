//! Client of Stepwell, a durable workflow engine.
//!
//! ```no_run
//! use serde_json::json;
//! use stepwell_client::{Client, RunOptions};
//!
//! # async fn example() -> Result<(), stepwell_client::Error> {
//! let stepwell = Client::find()?;
//! let run = stepwell.run("hello", json!({"name": "Ann"}), RunOptions::default()).await?;
//! println!("{} {}", run.status, run.output);
//! # Ok(())
//! # }
//! ```
//!
//! [`Client::find`] takes the server and the key from `STEPWELL_URL` and `STEPWELL_KEY`, else from the data directory of a
//! server on this machine. [`Client::new`] takes them from you.
//!
//! | module | what is in it |
//! | --- | --- |
//! | this one | [`Client`] with a method per operation; the types that it returns; [`Error`] and [`Problem`] |
//! | [`build`] | definitions in code |
//! | [`webhooks`] | signatures of requests, and answers to steps that wait for a webhook |
//! | `testing` | with the feature `testing`: definitions on virtual time, and throw-away servers |
//!
//! Operations that have no method of their own can be called with [`Call`].
//!
//! The client needs a tokio runtime. TLS uses the rustls provider that the program installed, else ring; this crate does
//! not install one.

#![warn(missing_docs)]

pub mod build;
mod call;
mod client;
mod error;
mod find;
mod pages;
mod runs;
mod secrets;
mod sets;
mod sse;
mod steps;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod types;
pub mod webhooks;
mod workflows;

pub use call::{ATTEMPTS, Call};
pub use client::{Client, Created};
pub use error::{Error, Fault, Fix, Problem};
pub use find::{KeyFile, Options, is_local};
pub use pages::Pages;
/// The HTTP client underneath, for [`Client::request`].
pub use reqwest;
pub use runs::{RunFilters, RunOptions, TriggerOptions};
pub use sets::{
    ApprovalKind, AttemptReason, AttemptStatus, Dialect, LogLevel, OnTimeout, RunStatus, StartedHow, StepKind,
    StepStatus, TriggerKind, WaitingReason,
};
pub use sse::{Frame, Parser};
pub use steps::Answer;
pub use stream::{Events, Next, Stream};
pub use types::{
    Approval, Attempt, ChangedCall, EarlierWorkflow, Event, GivenApproval, LogLine, Page, ParentStep, PausedKey, Run,
    RunSummary, RunWarning, Schedule, Secret, Started, StartedBy, StartedWith, Step, StepError, Task, Waiting,
    Workflow,
};
pub use workflows::{NewSchedule, WorkflowFilters};
