//! Texts for agents: short, with the next call to make.

use super::{bounds, gates};
use crate::error::Problem;
use crate::view::{ApprovalView, FaultView, Run};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use std::fmt::Write;
use stepwell_core::approval::without_answer;

/// Maximum length of a value in a text. The structured content has all of it.
const SHOWN: usize = 3_000;
/// Maximum length of one version of a changed call in a text.
const CHANGED: usize = 500;
/// Maximum number of steps in a text.
const STEPS: usize = 50;

/// A result with structured content and a text, both bounded.
pub fn result(structured: Value, text: String) -> CallToolResult {
    result_within(structured, text, bounds::STRUCTURED)
}

/// A result with at most this much structured content.
pub fn result_within(structured: Value, text: String, most: usize) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(bounds::cut(&text, bounds::TEXT))]);
    result.structured_content = Some(bounds::fit(structured, most));
    result
}

/// An error result that the caller can act on. Corrections that a program can apply are in its structured content.
pub fn refusal(problem: &Problem) -> CallToolResult {
    let text = bounds::cut(&self::problem(problem), bounds::TEXT);
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    if problem.errors.iter().any(|error| error.fix.is_some()) {
        let errors: Vec<&FaultView> = problem.errors.iter().filter(|error| error.fix.is_some()).collect();
        let shown = serde_json::json!({"valid": false, "code": problem.code, "errors": errors});
        // A correction that is cut would be wrong.
        if bounds::size(&shown) <= bounds::STRUCTURED {
            result.structured_content = Some(shown);
        }
    }
    result
}

/// The error and all its details with their locations.
pub fn problem(problem: &Problem) -> String {
    let mut text = format!("{} [{}]", problem.detail, problem.code);
    if problem.code == "invalid-definition" || problem.errors.len() > 1 {
        for fault in &problem.errors {
            let _ = write!(text, "\n- {}", self::fault(fault));
        }
    }
    if let Some(wait) = problem.retry_after {
        let _ = write!(text, "\nTry again in {} s.", wait.as_secs_f64().ceil());
    }
    text
}

fn fault(fault: &FaultView) -> String {
    let mut text = String::new();
    if !fault.path.is_empty() {
        let _ = write!(text, "{}", fault.path);
    }
    if let Some(line) = fault.line {
        let _ = write!(text, "{}line {line}", if text.is_empty() { "" } else { ", " });
    }
    let _ = write!(text, "{}{}", if text.is_empty() { "" } else { ": " }, fault.message);
    if let Some(hint) = &fault.hint {
        let _ = write!(text, "; {hint}");
    }
    if let Some(code) = &fault.code {
        let _ = write!(text, " [{code}]");
    }
    text
}

/// The state of a run, and the possible next calls. `address` is where people answer gates.
pub fn run(run: &Run, approvals: &[ApprovalView], address: &str, may_read: bool) -> String {
    let mut text =
        format!("Run {} of {:?} (version {}) is {}.", run.id, run.workflow, run.workflow_version, run.status);
    if let Some(error) = &run.error {
        let _ = write!(text, "\nError: {} [{}]", error.message, error.code);
    }
    for wait in &run.waiting_for {
        let at = if wait.step.is_empty() { String::new() } else { format!(" at {:?}", wait.step) };
        let until = wait.until.map(|until| format!(", until {} at the latest", until.0)).unwrap_or_default();
        let _ = write!(text, "\nIt waits for {}{at}: {}{until}.", wait.what, wait.moved_on_by);
    }
    for approval in approvals {
        let _ = write!(text, "\n{}", gate(approval, address));
    }
    for (path, step) in run.tasks.0.iter().filter(|_| may_read) {
        let Some(changed) = &step.changed else { continue };
        let (from, to) = (changed.from.to_string(), step.input.as_ref().map(Value::to_string).unwrap_or_default());
        let (from, to) = (bounds::cut(&from, CHANGED), bounds::cut(&to, CHANGED));
        let _ = write!(text, "\nThe call of {path:?} was changed by {}: it was {from} and is {to}", changed.by);
    }
    if run.finished_at.is_none() && may_read {
        let _ = write!(text, "\nIt continues by itself. Wait for it with workflow_wait, run_id {:?}.", run.id);
    }
    if let Some(output) = &run.output {
        let _ = write!(text, "\nOutput: {}", bounds::cut(&output.to_string(), SHOWN));
    }
    text
}

/// The command that answers a gate.
pub fn command(approval: &ApprovalView) -> String {
    format!("stepwell approve {} {}", approval.run_id, quoted(&approval.step))
}

/// A path of a step as a word of a shell.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if path.chars().all(plain) { path.to_string() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// Where to answer a gate that cannot be shown in full over MCP.
pub fn elsewhere(approval: &ApprovalView) -> String {
    format!("It is too long to be shown in full here: answer it in the dashboard, or with `{}`.", command(approval))
}

fn gate(approval: &ApprovalView, address: &str) -> String {
    let message = bounds::cut(approval.asks["message"].as_str().unwrap_or_default(), 2_000);
    let asked = if message.is_empty() { String::new() } else { format!(" {message:?}") };
    let asked = format!("{asked} (asked by {})", approval.asked_by);
    let silence = without_answer(approval.until.map(|until| until.0), approval.on_timeout.as_deref());
    if !approval.mine {
        let step = &approval.step;
        let command = command(approval);
        return format!(
            "Someone else has to answer{asked} at {step:?}; this key is not allowed to. Tell them: {address}, or \
             `{command}`. {silence}"
        );
    }
    if !gates::fits(approval) {
        return format!("You are asked{asked} at {:?}. {} {silence}", approval.step, elsewhere(approval));
    }
    let digest = approval.digest.as_ref().map(|digest| format!(", digest {digest:?}")).unwrap_or_default();
    format!(
        "You may answer{asked}: workflow_approve or workflow_deny with run_id {:?}, step_name {:?}{digest}. {silence}",
        approval.run_id, approval.step
    )
}

/// One line per step.
pub fn steps(run: &Run) -> String {
    let mut text = String::new();
    for (path, step) in run.tasks.0.iter().take(STEPS) {
        let _ = write!(text, "\n- {path}: {}", step.status);
        if step.attempt > 1 {
            let _ = write!(text, ", attempt {}", step.attempt);
        }
        if let Some(error) = &step.error {
            let _ = write!(text, ", {} [{}]", error.message, error.code);
        }
    }
    if run.tasks.0.len() > STEPS {
        let _ = write!(text, "\n- and {} more", run.tasks.0.len() - STEPS);
    }
    text
}
