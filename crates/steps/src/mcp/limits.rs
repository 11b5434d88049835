//! What a server may send, and how a connection ends when it sends more.

use std::sync::OnceLock;
use tokio_util::sync::CancellationToken;

/// Maximum size of a message, in bytes.
pub const MAX_MESSAGE: usize = 16 << 20;
/// Maximum number of values in a message: parsed, a small value takes many times its bytes.
pub const MAX_VALUES: usize = 500_000;
/// Requests of the server (`ping`, …) whose replies it has not read yet.
pub const MAX_REPLIES: usize = 64;
/// Maximum length of the id of a server's request, which the reply repeats.
pub const MAX_ID: usize = 256;
/// How long a server may leave its input unread.
pub const MAX_STALL: std::time::Duration = std::time::Duration::from_secs(30);
/// Tools and pages in a list, and the bytes of all tools.
pub const MAX_TOOLS: usize = 1_000;
pub const MAX_PAGES: usize = 200;
pub const MAX_LIST: usize = 8 << 20;
/// Bytes of one tool, of its description, and of each of its schemas.
pub const MAX_TOOL: usize = 256 << 10;
pub const MAX_TITLE: usize = 500;
pub const MAX_DESCRIPTION: usize = 32 << 10;
pub const MAX_SCHEMA: usize = 64 << 10;
/// Tools with a reason why they are not offered that are remembered.
pub const MAX_HELD: usize = 100;
/// Bytes of a form that users are asked to fill in, and its fields.
pub const MAX_FORM: usize = 64 << 10;
pub const MAX_FIELDS: usize = 100;
/// Bytes of the state that a server leaves with a postponed call, and of a task's id.
pub const MAX_STATE: usize = 256 << 10;
pub const MAX_TASK_ID: usize = 1_000;
/// How often a server may postpone a call.
pub const MAX_ROUNDS: u32 = 100;

/// Why a connection is ended by this side, if it is.
#[derive(Default)]
pub struct Verdict {
    why: OnceLock<String>,
    ended: CancellationToken,
}

impl Verdict {
    /// Ends the connection. The first reason counts.
    pub fn end(&self, why: impl Into<String>) {
        let _ = self.why.set(why.into());
        self.ended.cancel();
    }

    pub fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Waits for the end.
    pub async fn ended(&self) -> String {
        self.ended.cancelled().await;
        self.why().unwrap_or_default().to_owned()
    }
}
