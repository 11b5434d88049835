//! Reviews of what agents' keys wrote: request and response types.

use super::Instant;
use serde::{Deserialize, Serialize};
use stepwell_engine::commands::{ReviewView, Reviewing, StepChanges, Uses, With};
use stepwell_engine::{Review, ReviewState};
use utoipa::ToSchema;

/// A version or a proposal that an agent's key wrote.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReviewSummary {
    pub id: String,
    pub workflow: String,
    pub workflow_id: String,
    /// Its version; none for a proposal, which becomes a version when a person accepts it.
    #[serde(default)]
    pub version: Option<u32>,
    #[schema(value_type = super::ReviewState)]
    pub state: String,
    /// The user whose key wrote it.
    pub written_by: String,
    /// The name of the key.
    #[serde(default)]
    pub key: Option<String>,
    /// Name and version of the MCP client.
    #[serde(default)]
    pub client: Option<String>,
    /// Why, in the agent's words.
    #[serde(default)]
    pub reason: Option<String>,
    pub written_at: Instant,
    #[serde(default)]
    pub answered_by: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Instant>)]
    pub answered_at: Option<Instant>,
    /// What the person who answered says to the agent.
    #[serde(default)]
    pub comment: Option<String>,
    /// The runs that it was accepted for.
    #[serde(default)]
    pub runs: Vec<String>,
}

/// A review with all that an answer is about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReviewDetail {
    #[serde(flatten)]
    pub summary: ReviewSummary,
    /// Whether a person can answer it now.
    pub open: bool,
    /// Of everything below. An answer must carry it.
    pub digest: String,
    /// What the agent wrote.
    pub source: String,
    /// The accepted version that it is compared with.
    #[serde(default)]
    pub base: Option<u32>,
    /// The source of that version.
    #[serde(default)]
    pub before: Option<String>,
    /// A unified diff of the two.
    pub diff: String,
    pub steps: StepChangesView,
    pub new: UsesView,
    pub simulation: SimulationView,
    /// The policies that apply to its steps, as far as that is known before a run.
    pub policies: Vec<String>,
}

/// Steps by their paths.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct StepChangesView {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

/// What the definition uses and the accepted version does not. `(computed)` is known in a run only.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsesView {
    pub tools: Vec<String>,
    pub hosts: Vec<String>,
    pub secrets: Vec<String>,
    pub connections: Vec<String>,
    /// Child workflows.
    pub workflows: Vec<String>,
}

/// A run in which calls succeed with made-up results and gates are approved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SimulationView {
    /// How it ended.
    #[schema(value_type = super::RehearsalStatus)]
    pub status: String,
    /// What was called or asked, in order.
    pub steps: Vec<String>,
    #[serde(default)]
    pub error: Option<String>,
}

/// An answer to a review.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    /// Of the review as it was shown.
    pub digest: String,
    /// For the agent that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Accepts the version for this run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl From<ReviewRequest> for Reviewing {
    fn from(request: ReviewRequest) -> Reviewing {
        Reviewing { digest: request.digest, comment: request.comment, run: request.run }
    }
}

impl From<With<Review>> for ReviewSummary {
    fn from(review: With<Review>) -> ReviewSummary {
        summary(review.id, review.is)
    }
}

fn summary(id: String, review: Review) -> ReviewSummary {
    let state: ReviewState = review.state();
    let answer = review.answer.as_ref();
    ReviewSummary {
        id,
        state: state.name().to_string(),
        answered_by: answer.map(|answer| answer.by.clone()),
        answered_at: answer.map(|answer| answer.at.into()),
        comment: answer.and_then(|answer| answer.comment.clone()),
        workflow: review.name,
        workflow_id: review.workflow,
        version: review.version,
        written_by: review.by,
        key: review.key,
        client: review.client,
        reason: review.reason,
        written_at: review.at.into(),
        runs: review.runs.into_iter().collect(),
    }
}

impl From<ReviewView> for ReviewDetail {
    fn from(view: ReviewView) -> ReviewDetail {
        let StepChanges { added, changed, removed } = view.steps;
        let Uses { tools, hosts, secrets, connections, workflows } = view.new;
        ReviewDetail {
            summary: summary(view.id, view.review),
            open: view.is_open,
            digest: view.digest,
            source: view.text,
            base: view.base,
            before: view.before,
            diff: view.diff,
            steps: StepChangesView { added, changed, removed },
            new: UsesView {
                tools: tools.into_iter().collect(),
                hosts: hosts.into_iter().collect(),
                secrets: secrets.into_iter().collect(),
                connections: connections.into_iter().collect(),
                workflows: workflows.into_iter().collect(),
            },
            simulation: SimulationView {
                status: view.simulation.status,
                steps: view.simulation.steps,
                error: view.simulation.error,
            },
            policies: view.policies,
        }
    }
}
