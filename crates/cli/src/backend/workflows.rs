//! Workflows: what there is, the next version of one, and its switches.

use super::{Backend, Directory, or_refusal};
use crate::client::{Call, Client, Refusal};
use serde_json::{Value, json};
use stepwell_engine::Error;
use stepwell_engine::commands::{Source, State, WorkflowQuery};
use stepwell_formats::code;
use stepwell_server::view::{
    EarlierWorkflow, FaultView, NewSchedule, Page, ScheduleSummary, VersionView, WarningsView, Workflow,
    WorkflowSummary,
};

const PAGE: u32 = 1_000;

/// The newest version of a workflow, as far as the next one must know it.
pub struct Current {
    /// What a server knows this state of it by.
    tag: Option<String>,
    pub version: u32,
    pub source: String,
}

impl Client {
    /// What a definition uses and the server does not have. Refused if the definition is wrong.
    pub async fn missing(&self, text: &str) -> anyhow::Result<Vec<FaultView>> {
        let call = Call::post(&["check"]).query("missing", Some(true)).text(text);
        let found = self.data_if_any::<WarningsView>(call).await?.map(|found| found.warnings).unwrap_or_default();
        // Whatever else there is to warn about, this program found itself.
        Ok(found.into_iter().filter(|warning| warning.code.as_deref() == Some(code::MISSING_HERE)).collect())
    }
}

impl Directory {
    async fn summary(&self, workflow: &str) -> anyhow::Result<WorkflowSummary> {
        let compiled = or_refusal(self.engine.workflows(&self.caller).get(workflow).await)?;
        Ok(WorkflowSummary::new(&compiled, &or_refusal(self.engine.workflows(&self.caller).state(&compiled).await)?))
    }
}

impl Backend {
    pub async fn workflows(&self) -> anyhow::Result<Vec<WorkflowSummary>> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.workflow_page(cursor).await?;
            all.extend(page.data);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    async fn workflow_page(&self, cursor: Option<String>) -> anyhow::Result<Page<WorkflowSummary>> {
        match self {
            Backend::Server(client) => {
                let call = Call::get(&["workflows"]).query("limit", Some(PAGE)).query("cursor", cursor.as_ref());
                client.body(call).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let query = WorkflowQuery { cursor, limit: PAGE, ..WorkflowQuery::default() };
                Ok(or_refusal(engine.workflows(caller).page(query).await)?.into())
            }
        }
    }

    /// The workflow of exactly this name, if there is one.
    pub async fn current(&self, name: &str) -> anyhow::Result<Option<Current>> {
        match self {
            Backend::Server(client) => match client.data_with_etag::<Workflow>(Call::get(&["workflows", name])).await {
                Ok((Workflow { summary, source, .. }, tag)) if summary.name == name => {
                    Ok(Some(Current { tag, version: summary.version, source }))
                }
                Ok(_) => Ok(None),
                Err(error) if Refusal::is_missing(&error) => Ok(None),
                Err(error) => Err(error),
            },
            Backend::Directory(Directory { engine, caller }) => match engine.workflows(caller).get(name).await {
                Ok(compiled) if compiled.row.name == name => {
                    let row = &compiled.row;
                    Ok(Some(Current { tag: None, version: row.version, source: row.source.clone() }))
                }
                Ok(_) | Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => or_refusal(Err(error)),
            },
        }
    }

    /// The newest version with its definition.
    pub async fn workflow(&self, workflow: &str) -> anyhow::Result<Workflow> {
        match self {
            Backend::Server(client) => client.data(Call::get(&["workflows", workflow])).await,
            Backend::Directory(Directory { engine, caller }) => {
                let workflows = engine.workflows(caller);
                let (compiled, deleted_at) = or_refusal(workflows.look_up(workflow).await)?;
                let state = State { deleted_at, ..or_refusal(workflows.state(&compiled).await)? };
                // Only a server has addresses for webhooks.
                Ok(Workflow::new(&compiled, &state, Vec::new()))
            }
        }
    }

    /// All versions, newest first.
    pub async fn versions(&self, workflow: &str) -> anyhow::Result<Vec<VersionView>> {
        match self {
            Backend::Server(client) => {
                Ok(client.body::<Page<VersionView>>(Call::get(&["workflows", workflow, "versions"])).await?.data)
            }
            Backend::Directory(Directory { engine, caller }) => {
                let rows = or_refusal(engine.workflows(caller).versions(workflow).await)?;
                Ok(rows.into_iter().map(VersionView::from).collect())
            }
        }
    }

    pub async fn version(&self, workflow: &str, version: u32) -> anyhow::Result<VersionView> {
        match self {
            Backend::Server(client) => {
                client.data(Call::get(&["workflows", workflow, "versions", &version.to_string()])).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let compiled = or_refusal(engine.workflows(caller).version(workflow, version).await)?;
                Ok(compiled.row.clone().into())
            }
        }
    }

    /// Whether the server takes the definition; nothing is kept.
    pub async fn check(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::post(&["check"]).text(text)).await,
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.workflows(caller).check_named(Source { text, file: None }).await).map(|_| ())
            }
        }
    }

    /// Makes the next version, if the workflow is still as it was.
    pub async fn define(&self, name: &str, text: &str, before: Option<&Current>) -> anyhow::Result<WorkflowSummary> {
        match (self, before) {
            (Backend::Server(client), Some(before)) => {
                let path = ["workflows", name];
                client.data(Call::put(&path).text(text).header("if-match", before.tag.as_deref())?).await
            }
            (Backend::Server(client), None) => client.data(Call::post(&["workflows"]).text(text)).await,
            (Backend::Directory(directory), _) => {
                let source = Source { text, file: None };
                let defined = or_refusal(directory.engine.workflows(&directory.caller).define(source).await)?;
                let earlier = defined.before.map(|(id, at)| EarlierWorkflow { id, deleted_at: at.into() });
                Ok(WorkflowSummary { earlier, ..directory.summary(name).await? })
            }
        }
    }

    pub async fn enable(&self, workflow: &str, enabled: bool) -> anyhow::Result<WorkflowSummary> {
        match self {
            Backend::Server(client) => {
                client.data(Call::patch(&["workflows", workflow]).json(json!({"enabled": enabled}))).await
            }
            Backend::Directory(directory) => {
                or_refusal(directory.engine.workflows(&directory.caller).enable(workflow, enabled).await)?;
                directory.summary(workflow).await
            }
        }
    }

    /// Makes a workflow a part of a set of definitions.
    pub async fn assign(&self, workflow: &str, set: &str) -> anyhow::Result<WorkflowSummary> {
        match self {
            Backend::Server(client) => {
                client.data(Call::patch(&["workflows", workflow]).json(json!({"set": set}))).await
            }
            Backend::Directory(directory) => {
                let workflows = directory.engine.workflows(&directory.caller);
                or_refusal(workflows.assign(workflow, Some(set.to_string())).await)?;
                directory.summary(workflow).await
            }
        }
    }

    /// Holds new runs, or lets them go.
    pub async fn hold(&self, workflow: &str, key: Option<Value>, hold: bool) -> anyhow::Result<WorkflowSummary> {
        match self {
            Backend::Server(client) => {
                let verb = if hold { "pause" } else { "resume" };
                let body = key.map(|key| json!({"key": key})).unwrap_or_else(|| json!({}));
                client.data(Call::post(&["workflows", workflow, verb]).json(body)).await
            }
            Backend::Directory(directory) => {
                let Directory { engine, caller } = directory;
                or_refusal(match hold {
                    true => engine.workflows(caller).pause(workflow, key).await,
                    false => engine.workflows(caller).resume(workflow, key).await,
                })?;
                directory.summary(workflow).await
            }
        }
    }

    /// Deleted workflows, latest deletion first.
    pub async fn deleted_workflows(&self) -> anyhow::Result<Vec<WorkflowSummary>> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page: Page<WorkflowSummary> = match self {
                Backend::Server(client) => {
                    let call = Call::get(&["workflows"]).query("deleted", Some(true)).query("limit", Some(PAGE));
                    client.body(call.query("cursor", cursor.as_ref())).await?
                }
                Backend::Directory(Directory { engine, caller }) => {
                    let query = WorkflowQuery { deleted: true, cursor, limit: PAGE, ..WorkflowQuery::default() };
                    or_refusal(engine.workflows(caller).page(query).await)?.into()
                }
            };
            all.extend(page.data);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    pub async fn delete_workflow(&self, workflow: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["workflows", workflow])).await,
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.workflows(caller).delete(workflow).await)
            }
        }
    }

    /// Restores a deleted workflow, by its id or by the name of the one that was deleted last.
    pub async fn restore_workflow(&self, workflow: &str) -> anyhow::Result<WorkflowSummary> {
        match self {
            Backend::Server(client) => client.data(Call::post(&["workflows", workflow, "restore"])).await,
            Backend::Directory(directory) => {
                let Directory { engine, caller } = directory;
                let compiled = or_refusal(engine.workflows(caller).restore(workflow).await)?;
                directory.summary(&compiled.row.workflow).await
            }
        }
    }

    /// Adds a schedule that belongs to the caller.
    pub async fn add_schedule(&self, workflow: &str, new: &NewSchedule) -> anyhow::Result<ScheduleSummary> {
        match self {
            Backend::Server(client) => {
                client.data(Call::post(&["workflows", workflow, "schedules"]).json(new.written())).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let added = engine.workflows(caller).add_schedule(workflow, &new.written()).await;
                Ok(or_refusal(added)?.into())
            }
        }
    }

    pub async fn remove_schedule(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Backend::Server(client) => client.execute(Call::delete(&["schedules", id])).await,
            Backend::Directory(Directory { engine, caller }) => {
                or_refusal(engine.workflows(caller).remove_schedule(id).await)
            }
        }
    }

    pub async fn schedule(&self, workflow: &str) -> anyhow::Result<Vec<ScheduleSummary>> {
        match self {
            Backend::Server(client) => {
                let page: Page<ScheduleSummary> = client.body(Call::get(&["workflows", workflow, "schedule"])).await?;
                Ok(page.data)
            }
            Backend::Directory(Directory { engine, caller }) => {
                let all = or_refusal(engine.workflows(caller).schedule(workflow).await)?;
                Ok(all.into_iter().map(ScheduleSummary::from).collect())
            }
        }
    }
}
