//! Reviews as agents see them: what became of what they wrote. Answering is for people, who use other surfaces.

use super::text;
use crate::app::App;
use crate::error::Problem;
use crate::view::ReviewSummary;
use rmcp::model::CallToolResult;
use serde::Deserialize;
use serde_json::{Value, json};
use stepwell_engine::commands::Defined;
use stepwell_engine::{Caller, ReviewState};

/// Answered reviews that a list has at most.
const MAX_LISTED: usize = 50;

#[derive(Deserialize)]
pub struct Which {
    review: Option<String>,
}

pub async fn list(app: &App, caller: &Caller, which: Which) -> Result<CallToolResult, Problem> {
    let reviews = app.engine.reviews(caller);
    let found: Vec<ReviewSummary> = match &which.review {
        Some(review) => vec![crate::view::ReviewDetail::from(reviews.get(review).await?).summary],
        // The newest first.
        None => reviews.list(true).await?.into_iter().rev().take(MAX_LISTED).map(Into::into).collect(),
    };
    let line = |review: &ReviewSummary| {
        let comment = review.comment.as_ref().map(|comment| format!(": {comment}")).unwrap_or_default();
        format!("\n- {} {:?} is {}{comment}", review.id, review.workflow, review.state)
    };
    let lines: String = found.iter().map(line).collect();
    let text = if found.is_empty() { "No agent wrote anything.".into() } else { format!("Reviews:{lines}") };
    Ok(text::result(json!({"reviews": found, "next": null}), text))
}

/// What came of a definition, in a sentence.
pub fn stored(defined: &Defined) -> String {
    let (row, what) = (&defined.compiled.row, if defined.changed { "was stored" } else { "is unchanged" });
    let version = format!("Version {} of {:?} {what}. Start it with workflow_start.", row.version, row.name);
    let Some(review) = &defined.review else { return version };
    let exposed = defined.compiled.definition.expose_as_tool;
    match review.is.state() {
        ReviewState::Proposed => format!(
            "Your version of {:?} is a proposal ({}). Version {} stays current until a person accepts yours \
             (`stepwell review accept {}`); workflow_reviews tells you the answer.",
            row.name, review.id, row.version, review.id,
        ),
        ReviewState::Accepted => version,
        ReviewState::Unreviewed | ReviewState::Refused => {
            let tool = if exposed { " It is not offered as a tool until then." } else { "" };
            format!(
                "{version} No person has accepted it ({}): its runs wait for an approval before each call with side \
                 effects, and its schedules do not fire, until one does (`stepwell review accept {}`).{tool}",
                review.id, review.id,
            )
        }
    }
}

/// The review of a definition, for its structured result.
pub fn brief(defined: &Defined) -> Value {
    let review = defined.review.as_ref();
    review.map_or(Value::Null, |review| json!({"id": review.id, "state": review.is.state().name()}))
}
