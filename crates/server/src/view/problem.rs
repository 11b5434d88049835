//! Errors in the format of RFC 9457, with stable codes.

use super::RunStatus;
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
    #[schema(value_type = RunStatus, required = false)]
    pub status_now: Option<String>,
}

/// One error, its location, and how to fix it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FaultView {
    /// For people: `tasks.send.needs[0]`, or the name of a query parameter or header.
    pub path: String,
    /// The same place as a JSON Pointer: `/tasks/send/needs/0`.
    #[serde(default)]
    #[schema(required = true)]
    pub pointer: String,
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

impl FaultView {
    /// A fault at a place that is given in either form.
    pub fn at(place: &str, message: impl Into<String>) -> FaultView {
        let (path, pointer) = both_forms(place);
        FaultView { path, pointer, message: message.into(), ..FaultView::default() }
    }
}

/// A place for people and as a JSON Pointer, whichever of the two it is given as.
fn both_forms(place: &str) -> (String, String) {
    let (mut path, mut pointer) = (String::new(), String::new());
    let is_pointer = place.starts_with('/');
    let parts: Vec<String> = match is_pointer {
        true => place[1..].split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect(),
        false => place.split(['.', '/', '[', ']']).filter(|part| !part.is_empty()).map(str::to_string).collect(),
    };
    for part in parts {
        let is_index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        match is_index {
            true => path += &format!("[{part}]"),
            false if path.is_empty() => path += &part,
            false => path += &format!(".{part}"),
        }
        pointer += &format!("/{}", part.replace('~', "~0").replace('/', "~1"));
    }
    // What was written for people stays as it was written.
    let written = !is_pointer && !place.contains('/');
    (if written { place.to_string() } else { path }, pointer)
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
            code: Some(fault.code.to_string()),
            hint: fault.hint.clone(),
            fix: fault.fix.as_ref().map(|fix| FixView { path: fix.path.clone(), value: fix.value.clone() }),
            line: fault.line,
            column: fault.column,
            ..FaultView::at(&fault.path, fault.message.clone())
        }
    }
}

/// A workflow that was defined, and what is suspicious in its definition.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct DefinedView {
    pub data: super::WorkflowSummary,
    /// Of what an agent's key wrote. If it is `proposed`, `data` is the version that stays current.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = super::ReviewSummary, required = false)]
    pub review: Option<super::ReviewSummary>,
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
        FaultView::at(&fault.path, fault.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_form_for_people_and_one_for_programs() {
        let check = |given: &str, path: &str, pointer: &str| {
            assert_eq!(both_forms(given), (path.to_string(), pointer.to_string()), "{given}");
        };
        check("tasks.send.needs[0]", "tasks.send.needs[0]", "/tasks/send/needs/0");
        check("/list/1/n", "list[1].n", "/list/1/n");
        check("/a~1b/c~0d", "a/b.c~d", "/a~1b/c~0d");
        check("data/items/0", "data.items[0]", "/data/items/0");
        check("data", "data", "/data");
        check("", "", "");
        check("Idempotency-Key", "Idempotency-Key", "/Idempotency-Key");
    }
}
