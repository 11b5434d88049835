//! What the API returns, as far as programs need it. Servers may add fields, and every field has a default, so that a client
//! also understands a server that is a little older or newer. Times are RFC 3339.

use crate::sets::{
    ApprovalKind, AttemptReason, AttemptStatus, Dialect, LogLevel, OnTimeout, RunStatus, StartedHow, StepKind,
    StepStatus, TriggerKind, WaitingReason,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One page of a list.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entries.
    pub data: Vec<T>,
    /// The `cursor` of the next page; the last page has none.
    #[serde(default)]
    pub next: Option<String>,
}

/// Declares a type that the API returns: every field has a default.
macro_rules! returned {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, PartialEq, Debug, Default, Deserialize)]
            #[serde(default)]
            #[non_exhaustive]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }
        )*
    };
}

returned! {
    /// A run in full.
    Run {
        /// `run_…`
        run_id: String,
        /// `wf_…`
        workflow_id: String,
        /// The name of its workflow.
        workflow: String,
        /// The version of the workflow that it runs.
        workflow_version: u32,
        /// Where it is.
        status: RunStatus,
        /// Who started it.
        created_by: String,
        /// When it was started.
        created_at: String,
        /// Who or what started it.
        started_by: Option<StartedBy>,
        /// The user who retried it last.
        retried_by: Option<String>,
        /// When it begins or began, if it was scheduled.
        scheduled_for: Option<String>,
        /// When its first step began.
        started_at: Option<String>,
        /// When it ended.
        finished_at: Option<String>,
        /// When it times out, or would have.
        expires_at: Option<String>,
        /// What it was started with.
        input: Value,
        /// Its result, once it has completed.
        output: Value,
        /// Why it failed.
        error: Option<StepError>,
        /// What it waits for; empty once it has ended.
        waiting_for: Vec<Waiting>,
        /// Why its open approvals may not reach anyone who can answer them.
        warnings: Vec<RunWarning>,
        /// Its steps by name; steps inside loops by path, such as `each[3].charge`.
        tasks: BTreeMap<String, Step>,
        /// The cursor of further steps: `tasks` has the first 1,000.
        tasks_next: Option<String>,
        /// Labels of the run and of its workflow.
        labels: BTreeMap<String, String>,
        /// Increases with each retry of the run.
        generation: u32,
        /// Increases with every change of the run.
        version: i64,
        /// Whether it is a test.
        test: bool,
        /// The step of another run that started it.
        parent: Option<ParentStep>,
        /// When its payloads were erased on request.
        erased_at: Option<String>,
        /// When its workflow was deleted.
        workflow_deleted_at: Option<String>,
    }

    /// Who or what started a run.
    StartedBy {
        /// The user.
        user: String,
        /// The key that was used, if any.
        key: Option<StartedWith>,
        /// What the MCP client calls itself.
        client: Option<String>,
        /// How it was started.
        how: StartedHow,
        /// The id of the schedule.
        schedule: Option<String>,
    }

    /// The key that started a run.
    StartedWith {
        /// Its id.
        id: String,
        /// Its name.
        name: Option<String>,
        /// Whether it is an agent's key.
        agent: bool,
    }

    /// A step of another run.
    ParentStep {
        /// The other run.
        run_id: String,
        /// Path of the step.
        step: String,
    }

    /// Why an open approval of a run may not reach anyone who can answer it.
    RunWarning {
        /// Path of the step.
        step: String,
        /// What is wrong.
        message: String,
    }

    /// A run as lists show it.
    RunSummary {
        /// `run_…`
        run_id: String,
        /// The name of its workflow.
        workflow: String,
        /// `wf_…`
        workflow_id: String,
        /// The version of the workflow that it runs.
        workflow_version: u32,
        /// Where it is.
        status: RunStatus,
        /// Who started it.
        created_by: String,
        /// When it was started.
        created_at: String,
        /// When its first step began.
        started_at: Option<String>,
        /// When it ended.
        finished_at: Option<String>,
        /// Labels of the run and of its workflow.
        labels: BTreeMap<String, String>,
        /// Whether a step of another run started it.
        child: bool,
        /// When it begins or began, if it was scheduled.
        scheduled_for: Option<String>,
        /// When its workflow was deleted.
        workflow_deleted_at: Option<String>,
    }

    /// A run that was just started, or found under its idempotency key.
    Started {
        /// `run_…`
        run_id: String,
        /// `wf_…`
        workflow_id: String,
        /// The name of its workflow.
        workflow: String,
        /// The version of the workflow that it runs.
        workflow_version: u32,
        /// Where it is.
        status: RunStatus,
        /// When it began; nothing while it is queued.
        started_at: Option<String>,
        /// When it begins, if it is scheduled.
        scheduled_for: Option<String>,
    }

    /// A step of a run.
    Step {
        /// `step_…`
        id: String,
        /// What it does.
        kind: StepKind,
        /// How far it is, or how it ended.
        status: StepStatus,
        /// The HTTP status of the answer.
        status_code: Option<u16>,
        /// The number of the attempt.
        attempt: u32,
        /// How long it took.
        duration_ms: Option<i64>,
        /// When it began.
        started_at: Option<String>,
        /// When it ended.
        finished_at: Option<String>,
        /// What it was called with.
        input: Value,
        /// What it returned.
        output: Value,
        /// Why it failed.
        error: Option<StepError>,
        /// Headers of the response.
        headers: Option<BTreeMap<String, String>>,
        /// Whether the output was longer than 256 KB and is stored truncated.
        is_truncated: bool,
        /// The URL that ends its wait; only for callers who may deliver.
        callback_url: Option<String>,
        /// The run that its last attempt started.
        child_run_id: Option<String>,
        /// Who has approved a call that a policy held. The answers to a gate are in its output.
        approvals: Vec<GivenApproval>,
        /// What an approver changed of a call that a policy held.
        changed: Option<ChangedCall>,
        /// Whether the input, output and log are left out, because the answer would be too large.
        is_omitted: bool,
        /// The lines that its code wrote.
        log: Vec<LogLine>,
        /// All attempts, oldest first, if there were several.
        attempts: Vec<Attempt>,
    }

    /// One attempt of a step.
    Attempt {
        /// Its number.
        attempt: u32,
        /// How it went.
        status: AttemptStatus,
        /// Why it did not succeed.
        reason: Option<AttemptReason>,
        /// When it began.
        started_at: String,
        /// When it ended.
        finished_at: Option<String>,
        /// How long it took.
        duration_ms: Option<i64>,
        /// The HTTP status of the answer.
        status_code: Option<u16>,
        /// Headers of the response.
        headers: Option<BTreeMap<String, String>>,
        /// The run that it started.
        child_run_id: Option<String>,
        /// What it returned.
        output: Value,
        /// Why it failed.
        error: Option<StepError>,
        /// The lines that its code wrote.
        log: Vec<LogLine>,
    }

    /// An approval of a call that a policy held.
    GivenApproval {
        /// Who approved it.
        by: String,
        /// What they said.
        comment: Option<String>,
        /// The filled form.
        data: Value,
    }

    /// A held call that an approver changed.
    ChangedCall {
        /// Who changed it.
        by: String,
        /// The input before.
        from: Value,
    }

    /// A line that code wrote with `console`.
    LogLine {
        /// How it was written.
        level: LogLevel,
        /// What it says.
        text: String,
    }

    /// Why a run or a step failed.
    StepError {
        /// For programs.
        code: String,
        /// For people.
        message: String,
    }

    /// What an unfinished run waits for.
    Waiting {
        /// Path of the step; empty for the run itself.
        step: String,
        /// What it waits for.
        #[serde(rename = "for")]
        reason: WaitingReason,
        /// Since when.
        since: Option<String>,
        /// When it continues by itself.
        until: Option<String>,
        /// Who or what can make it continue.
        moved_on_by: String,
        /// Why the last attempt failed, or what the called service says about its progress.
        message: Option<String>,
    }

    /// A workflow. Lists leave out its definition.
    Workflow {
        /// `wf_…`
        id: String,
        /// Its name.
        name: String,
        /// Its newest version.
        version: u32,
        /// How its definition is written.
        dialect: Dialect,
        /// What it is for.
        description: Option<String>,
        /// The first of `triggers`.
        trigger: TriggerKind,
        /// How it is started.
        triggers: Vec<TriggerKind>,
        /// The number of its steps.
        task_count: u32,
        /// Whether new runs can start.
        enabled: bool,
        /// Whether new runs wait until it is resumed.
        paused: bool,
        /// Concurrency keys whose new runs wait.
        paused_keys: Vec<PausedKey>,
        /// The set of definitions that it belongs to.
        set: Option<String>,
        /// Who wrote this version.
        created_by: String,
        /// When its first version was stored.
        inserted_at: String,
        /// When this version was stored.
        updated_at: String,
        /// When it was deleted. It can be restored.
        deleted_at: Option<String>,
        /// The one of the same name that was deleted last.
        earlier: Option<EarlierWorkflow>,
        /// Its labels.
        labels: BTreeMap<String, String>,
        /// The definition as its author wrote it.
        source: String,
        /// The parsed definition.
        definition: Value,
        /// The schema of its input.
        input_schema: Value,
        /// Its tasks as written, in the tasks dialect.
        tasks: Value,
        /// Its steps by name, in any dialect.
        steps: BTreeMap<String, Task>,
        /// URLs that start it, for callers who may change it.
        webhooks: Vec<String>,
    }

    /// A step of a definition.
    Task {
        /// What it does.
        kind: StepKind,
        /// Steps that lead to it.
        needs: Vec<String>,
    }

    /// A concurrency key whose new runs wait.
    PausedKey {
        /// The key.
        key: Value,
        /// Who paused it.
        by: String,
        /// Since when.
        since: String,
    }

    /// A deleted workflow whose name another one has now.
    EarlierWorkflow {
        /// `wf_…`
        id: String,
        /// When it was deleted.
        deleted_at: String,
    }

    /// A gate that waits for people.
    Approval {
        /// `step_…`
        id: String,
        /// The run.
        run_id: String,
        /// Path of the step.
        step: String,
        /// The name of the workflow.
        workflow: String,
        /// The question: message, form, approvers, and what follows.
        asks: Value,
        /// Digest of all that is shown; give it with the answer, so that it counts only for what you saw.
        digest: Option<String>,
        /// Since when it waits.
        since: String,
        /// When it is decided without an answer.
        until: Option<String>,
        /// What happens then.
        on_timeout: Option<OnTimeout>,
        /// An approval, or a verdict on a call that may have happened.
        kind: ApprovalKind,
        /// Whether you may answer it.
        mine: bool,
        /// Who started the run.
        created_by: String,
        /// The same in words: the user, or which agent's key of which user, through which client.
        asked_by: String,
        /// The attempt that asks.
        attempt: u32,
        /// The version of the workflow.
        version: u32,
        /// How many approvals it needs.
        approvals: u32,
        /// Who has approved so far, if it needs several.
        approved_by: Vec<String>,
        /// Whether it has been escalated.
        escalated: bool,
        /// When it escalates.
        escalates_at: Option<String>,
        /// Why it may not reach anyone who can answer it.
        warnings: Vec<String>,
    }

    /// A schedule and its next ticks.
    Schedule {
        /// Its id.
        id: String,
        /// The workflow that it starts.
        workflow: String,
        /// The user who added it with a request. Nothing for one of the definition.
        by: Option<String>,
        /// Nothing for a single start.
        cron: Option<String>,
        /// The time zone of the cron expression.
        timezone: Option<String>,
        /// The next ticks, at most ten.
        next: Vec<String>,
        /// The last tick.
        last: Option<String>,
        /// The run that it started.
        last_run_id: Option<String>,
        /// Why it started none.
        last_error: Option<String>,
    }

    /// A secret without its value.
    Secret {
        /// Its id.
        id: String,
        /// Its name in templates: `{{secrets.NAME}}`.
        name: String,
        /// The hosts that it may be sent to; any host if there are none.
        hosts: Vec<String>,
        /// How many values it has had.
        version: u32,
        /// Whether it is masked in what services return.
        masked: bool,
        /// The master key that seals it.
        sealed_with: String,
        /// When it was created.
        created_at: String,
        /// When it got its newest value.
        changed_at: String,
        /// Who gave it that value.
        changed_by: String,
    }

    /// An entry of a run's log. The last event of a stream has the type `end` and a status.
    Event {
        /// The run.
        run_id: String,
        /// The version of the run that it belongs to.
        version: i64,
        /// When it happened; nothing for `end`.
        at: Option<String>,
        /// created, started, finished, skipped, ended, …, end
        #[serde(rename = "type")]
        kind: String,
        /// Path of the step.
        step: Option<String>,
        /// The status that the run has ended with, in `end`.
        status: Option<String>,
        /// Its other fields.
        #[serde(flatten)]
        fields: Map<String, Value>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_other_versions_are_understood() {
        let run: Run =
            serde_json::from_str(r#"{"run_id": "run_1", "status": "hibernating", "colour": "red"}"#).unwrap();
        assert_eq!((run.run_id.as_str(), run.status, run.status.is_ended()), ("run_1", RunStatus::Unknown, false));
        let run: Run = serde_json::from_str(r#"{"status": "timeout", "output": null}"#).unwrap();
        assert!(run.status.is_ended() && run.output.is_null());
    }
}
