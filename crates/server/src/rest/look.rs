//! What several handlers look up.

use crate::app::App;
use crate::error::Problem;
use crate::view::{RunFilters, RunSummary, TaskView, page_size};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use stepwell_core::graph::{Graph, Target};
use stepwell_engine::Error;
use stepwell_engine::commands::RunQuery;
use stepwell_store::{RunId, RunRow};

/// Steps of a definition with those that lead to them.
pub fn steps(graph: &Graph) -> BTreeMap<String, TaskView> {
    let view = |step: &stepwell_core::graph::Step| TaskView { kind: step.def.kind.name().into(), needs: Vec::new() };
    let mut all: BTreeMap<String, TaskView> =
        graph.steps.iter().map(|step| (step.def.name.to_string(), view(step))).collect();
    for step in &graph.steps {
        for out in &step.outs {
            let Target::Step(to) = out.to else { continue };
            let from = step.def.name.to_string();
            if let Some(next) = all.get_mut(&*graph.step(to).def.name).filter(|next| !next.needs.contains(&from)) {
                next.needs.push(from);
            }
        }
    }
    all
}

const STATUSES: [&str; 7] = ["queued", "running", "paused", "completed", "failed", "cancelled", "timeout"];

/// What was asked for, checked. A cursor is the last run of the page before.
pub fn query(filters: RunFilters) -> Result<RunQuery, Problem> {
    let split = |text: Option<String>| -> Vec<String> {
        let parts = text.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_string).collect()
    };
    let status = split(filters.status);
    if let Some(unknown) = status.iter().find(|status| !STATUSES.contains(&status.as_str())) {
        return Err(Problem::input("status", format!("{unknown:?} is not one of {}", STATUSES.join(", "))));
    }
    let labels = split(filters.label);
    if let Some(bad) = labels.iter().find(|label| !label.contains('=')) {
        return Err(Problem::input("label", format!("{bad:?} is not name=value")));
    }
    let before = match &filters.cursor {
        Some(cursor) => Some(cursor_run(cursor)?),
        None => None,
    };
    Ok(RunQuery {
        status,
        workflow: filters.workflow,
        by: filters.created_by,
        labels,
        text: filters.q.filter(|text| !text.is_empty()),
        since: filters.since.map(|since| since.0),
        until: filters.until.map(|until| until.0),
        tests: filters.tests.unwrap_or(false),
        parent: filters.parent,
        before,
        limit: page_size(filters.limit, 50)?,
    })
}

fn cursor_run(cursor: &str) -> Result<RunId, Problem> {
    let bad = || Problem::input("cursor", "this is not `next` of an earlier page");
    cursor.strip_prefix("r").and_then(|number| i64::from_str_radix(number, 36).ok()).map(RunId).ok_or_else(bad)
}

pub fn cursor(run: RunId) -> String {
    let (mut left, mut digits) = (run.0.unsigned_abs(), Vec::new());
    while left > 0 {
        digits.push(char::from_digit((left % 36) as u32, 36).unwrap_or('0'));
        left /= 36;
    }
    format!("r{}", digits.iter().rev().collect::<String>())
}

/// An answer with the digest of what it says as its tag; 304 if whoever asks has just that.
pub fn tagged(data: &impl Serialize, headers: &HeaderMap) -> Response {
    let body = serde_json::to_string(data).expect("views have text keys only");
    let tag = format!("\"{}\"", &stepwell_store::digest(&body)[..32]);
    let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let known = known.is_some_and(|known| known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag));
    let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes");
    if known {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(ETAG, tag), (CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// Rows with the names of their workflows.
pub async fn summaries(app: &App, rows: &[RunRow]) -> Result<Vec<RunSummary>, Error> {
    let mut names: HashMap<i64, (String, String, u32)> = HashMap::new();
    for row in rows {
        if let Entry::Vacant(unknown) = names.entry(row.definition) {
            let named = app.engine.log().definition(row.definition).await?;
            unknown.insert(named.map(|row| (row.workflow, row.name, row.version)).unwrap_or_default());
        }
    }
    Ok(rows.iter().map(|row| RunSummary::new(row, names[&row.definition].clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_run() {
        for run in [1, 35, 36, 123_456_789_012_345, i64::MAX] {
            assert_eq!(cursor_run(&cursor(RunId(run))).unwrap(), RunId(run));
        }
        assert!(cursor_run("x").is_err());
        assert!(cursor_run("r!").is_err());
    }
}
