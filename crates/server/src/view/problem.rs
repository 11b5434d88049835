//! Errors as RFC 9457 has them, with a code that does not change.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong, for programs (`code`) and for people (`detail`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProblemView {
    /// Where the code is explained.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// Stays the same whatever the words around it.
    pub code: String,
    /// For whoever looks for this request in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Everything that is wrong with what was sent, if it was that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultView>,
    /// The state that the request came too late for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_now: Option<String>,
}

/// One thing that is wrong, where, and how to mend it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FaultView {
    /// Such as `tasks.send.needs[0]`.
    pub path: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}
