//! Errors in the format of RFC 9457, with stable codes.

use serde::{Deserialize, Serialize};
use stepwell_engine::schema::Fault;
use utoipa::ToSchema;

/// An error, for programs (`code`) and for people (`detail`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProblemView {
    /// Link to the documentation of the code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// Stable, unlike the text.
    pub code: String,
    /// Identifies the request in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Everything wrong with the request, if the input was invalid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultView>,
    /// What is suspicious in a definition beside its errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FaultView>,
    /// The current status of the run, if it no longer allows the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_now: Option<String>,
}

/// One error, its location, and how to fix it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FaultView {
    /// For example `tasks.send.needs[0]`.
    pub path: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A correction that a program can apply. It may also correct other faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<FixView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// A value to replace in a definition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FixView {
    /// A JSON Pointer; empty for the whole definition.
    pub path: String,
    pub value: serde_json::Value,
}

impl From<&stepwell_formats::Fault> for FaultView {
    fn from(fault: &stepwell_formats::Fault) -> FaultView {
        FaultView {
            path: fault.path.clone(),
            message: fault.message.clone(),
            code: Some(fault.code.to_string()),
            hint: fault.hint.clone(),
            fix: fault.fix.as_ref().map(|fix| FixView { path: fix.path.clone(), value: fix.value.clone() }),
            line: fault.line,
            column: fault.column,
        }
    }
}

/// A workflow that was defined, and what is suspicious in its definition.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DefinedView {
    pub data: super::WorkflowSummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FaultView>,
}

/// What is suspicious in a definition that is valid.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WarningsView {
    pub warnings: Vec<FaultView>,
}

impl From<Fault> for FaultView {
    fn from(fault: Fault) -> FaultView {
        FaultView { path: fault.dotted_path(), message: fault.message, ..FaultView::default() }
    }
}
