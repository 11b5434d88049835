//! Deleted workflows: finding and restoring them. Their runs, versions and ids stay.

use super::change::{current_auth, retry_on_conflict};
use super::{WorkflowPage, WorkflowQuery, Workflows};
use crate::access::Right;
use crate::error::Error;
use crate::rooms::Rooms;
use crate::triggers;
use crate::workflows::Compiled;
use serde_json::json;
use std::sync::Arc;
use stepwell_core::time::Time;
use stepwell_store::{Change, DefinitionRow, OrgId, Refused};

impl Workflows<'_> {
    /// A page of deleted workflows, latest deletion first. Needs the right to read.
    pub(super) async fn deleted_page(&self, query: WorkflowQuery) -> Result<WorkflowPage, Error> {
        self.caller.check(Right::Read)?;
        let deleted = self.rooms.cluster.store.deleted(self.caller.org, None).await?;
        let from = match &query.cursor {
            Some(last) => deleted.iter().position(|(row, _)| row.workflow == *last).map_or(deleted.len(), |at| at + 1),
            None => 0,
        };
        let mut page = WorkflowPage { workflows: Vec::new(), next: None };
        for (row, at) in deleted.into_iter().skip(from).filter(|(row, _)| query.has_text(&row.name)) {
            let compiled = self.rooms.workflows.compile(row)?;
            if !query.has_labels(&compiled) {
                continue;
            }
            if page.workflows.len() >= query.limit as usize {
                page.next = page.workflows.last().map(|(last, _)| last.row.workflow.clone());
                break;
            }
            let state = self.state(&compiled).await?;
            page.workflows.push((compiled, super::State { deleted_at: Some(at), ..state }));
        }
        Ok(page)
    }

    /// The newest version of a workflow, and when the workflow was deleted. A deleted one is found by its id. Needs the
    /// right to read.
    pub async fn look_up(&self, workflow: &str) -> Result<(Arc<Compiled>, Option<Time>), Error> {
        match self.get(workflow).await {
            Err(Error::NotFound { .. }) if workflow.starts_with("wf_") => {
                let (row, at) = self.find_deleted(workflow).await?;
                Ok((self.rooms.workflows.compile(row)?, Some(at)))
            }
            found => found.map(|compiled| (compiled, None)),
        }
    }

    pub(super) async fn get_even_deleted(&self, workflow: &str) -> Result<Arc<Compiled>, Error> {
        self.look_up(workflow).await.map(|(compiled, _)| compiled)
    }

    /// The deleted workflow with this id, or the one of this name that was deleted last.
    async fn find_deleted(&self, workflow: &str) -> Result<(DefinitionRow, Time), Error> {
        let found = self.rooms.cluster.store.deleted(self.caller.org, Some(workflow)).await?;
        let none = || Error::NotFound { what: "deleted workflow", name: workflow.to_string() };
        found.into_iter().next().ok_or_else(none)
    }

    /// Restores a deleted workflow, by its id or by its name, with new schedules and trigger URLs. Refused while another
    /// workflow has its name. Needs the right to define.
    pub async fn restore(&self, workflow: &str) -> Result<Arc<Compiled>, Error> {
        self.caller.check(Right::Define)?;
        retry_on_conflict(|| self.restore_once(workflow)).await
    }

    async fn restore_once(&self, workflow: &str) -> Result<Arc<Compiled>, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let living = self.rooms.cluster.store.find_definition(self.caller.org, workflow).await?;
        let (row, _) = match self.find_deleted(workflow).await {
            Err(Error::NotFound { .. }) if living.is_some() => {
                return Err(Error::NotNow(format!("the workflow {workflow:?} is not deleted")));
            }
            found => found?,
        };
        let taken = || Error::NotNow(taken(&row));
        if self.rooms.cluster.store.find_definition(self.caller.org, &row.name).await?.is_some() {
            return Err(taken());
        }
        let compiled = self.rooms.workflows.compile(row.clone())?;
        self.check_replaceable(&compiled.row, "restore").await?;
        let definition = &compiled.definition;
        self.rooms.access.check_definition(self.caller.org, definition).await?;
        self.check_tool_name(Some(&row.workflow), definition).await?;
        let mut records = triggers::sync(&self.rooms.triggers, row.org, &row.workflow, definition).await?;
        let accepted = self.rooms.workflows.reviewed(&row).await?.is_accepted();
        records.extend(self.claim(&row.workflow, row.version, definition, accepted).await?);
        let now = self.rooms.cluster.clock.now();
        let audit = vec![self.caller.audit(now, "workflow.restore", &row.name, json!({"id": row.workflow}))];
        let update = Change { records, audit, grants_of: Some(row.org), decided: Some(decided) };
        let (access, org, id) = (self.rooms.access.clone(), row.org, row.workflow.clone());
        let restored = tokio::spawn(async move {
            let restored = access.cluster.store.redefine(org, &id, update).await;
            access.epoch_moved(org);
            restored
        });
        let restored = restored.await.map_err(|_| Error::Unavailable("the engine is stopping".into()))??;
        self.rooms.triggers.rescheduled.notify_one();
        match restored {
            Ok(()) => Ok(compiled),
            Err(Refused::Taken) => Err(taken()),
            Err(_) => Err(Error::Changed("workflow")),
        }
    }
}

fn taken(row: &DefinitionRow) -> String {
    let DefinitionRow { name, workflow, .. } = row;
    format!("another workflow is named {name:?} now: delete it first, then restore {workflow}")
}

/// When a workflow was deleted, by its id.
pub(super) async fn deleted_at(rooms: &Rooms, org: OrgId, workflow: &str) -> Result<Option<Time>, Error> {
    let found = rooms.cluster.store.deleted(org, Some(workflow)).await?;
    Ok(found.into_iter().find(|(row, _)| row.workflow == workflow).map(|(_, at)| at))
}
