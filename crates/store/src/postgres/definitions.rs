//! Workflow versions. Changing them locks the organisation first.

use super::args::args;
use super::evidence::{WHOLE_DEFINITION, whole_definition};
use super::session::{DbResult, Session};
use super::{query, registry, rows};
use crate::evidence::{DefinitionEntry, Effects};
use crate::*;
use stepwell_core::time::Time;

pub async fn define(
    db: &Session,
    new: NewDefinition,
    with: Change,
) -> DbResult<Result<(DefinitionRow, Effects), Refused>> {
    registry::lock(db, new.org).await?;
    let newest = query::definition(db, query::NEWEST, args![new.org.0, new.name]).await?;
    let (workflow, version) = match new.follow(newest) {
        Ok(Next::Same(newest)) => return Ok(Ok((newest, Effects::default()))),
        Ok(Next::Version { workflow, version }) => (workflow, i64::from(version)),
        Err(refused) => return Ok(Err(refused)),
    };
    let mut effects = match registry::apply(db, with).await? {
        Ok(effects) => effects,
        Err(refused) => return Ok(Err(refused)),
    };
    let sql = format!(
        "INSERT INTO workflow_definitions (workflow, org, name, version, source, created_by, author, created_at, test,
           deleted_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING {}",
        rows::DEFINITION
    );
    let deleted = new.test.then_some(new.at.0);
    let args =
        args![workflow, new.org.0, new.name, version, new.source, new.by, new.author, new.at.0, new.test, deleted];
    let Some(row) = db.one(&sql, args).await?.map(|row| rows::definition(&row)) else {
        return Ok(Err(Refused::Conflict));
    };
    effects.entries.push(DefinitionEntry { row: row.clone(), deleted, test: new.test }.added());
    Ok(Ok((row, effects)))
}

/// The deletion of a workflow, and the change that goes with it.
pub struct Removal {
    pub org: OrgId,
    pub workflow: String,
    pub at: Time,
    pub with: Change,
}

pub async fn undefine(db: &Session, removal: Removal) -> DbResult<Result<((), Effects), Refused>> {
    let Removal { org, workflow, at, with } = removal;
    registry::lock(db, org).await?;
    let sql = format!(
        "UPDATE workflow_definitions SET deleted_at = $3 WHERE org = $1 AND workflow = $2 AND deleted_at IS NULL
         RETURNING {WHOLE_DEFINITION}"
    );
    let deleted = db.query(&sql, args![org.0, workflow, at.0]).await?;
    if deleted.is_empty() {
        return Ok(Err(Refused::Conflict));
    }
    Ok(registry::apply(db, with).await?.map(|mut effects| {
        for entry in deleted.iter().map(whole_definition) {
            let before = DefinitionEntry { row: entry.row.clone(), deleted: None, ..entry };
            effects.entries.extend([before.removed(), entry.added()]);
        }
        ((), effects)
    }))
}

pub async fn deleted(db: &Session, org: OrgId, named: Option<&str>) -> DbResult<Vec<(DefinitionRow, Time)>> {
    let sql = format!(
        "SELECT {WHOLE_DEFINITION} FROM workflow_definitions d
         WHERE org = $1 AND deleted_at IS NOT NULL AND NOT test AND ($2::TEXT IS NULL OR name = $2 OR workflow = $2)
         AND version = (SELECT max(version) FROM workflow_definitions WHERE workflow = d.workflow)
         ORDER BY deleted_at DESC, id DESC"
    );
    let entry = |entry: DefinitionEntry| (entry.row, Time(entry.deleted.unwrap_or_default()));
    Ok(db.query(&sql, args![org.0, named]).await?.iter().map(whole_definition).map(entry).collect())
}

/// Restores a deleted workflow, with the change that goes with it.
pub async fn redefine(
    db: &Session,
    org: OrgId,
    workflow: String,
    with: Change,
) -> DbResult<Result<((), Effects), Refused>> {
    registry::lock(db, org).await?;
    let which = "WHERE org = $1 AND workflow = $2 AND deleted_at IS NOT NULL AND NOT test";
    let sql = format!("SELECT {WHOLE_DEFINITION} FROM workflow_definitions {which}");
    let deleted = db.query(&sql, args![org.0, workflow]).await?;
    let deleted: Vec<DefinitionEntry> = deleted.iter().map(whole_definition).collect();
    let Some(first) = deleted.first() else { return Ok(Err(Refused::Conflict)) };
    if query::definition(db, query::NEWEST, args![org.0, first.row.name]).await?.is_some() {
        return Ok(Err(Refused::Taken));
    }
    let sql = format!("UPDATE workflow_definitions SET deleted_at = NULL {which}");
    db.execute(&sql, args![org.0, workflow]).await?;
    Ok(registry::apply(db, with).await?.map(|mut effects| {
        for entry in deleted {
            let after = DefinitionEntry { row: entry.row.clone(), deleted: None, ..entry };
            effects.entries.extend([entry.removed(), after.added()]);
        }
        ((), effects)
    }))
}

pub async fn first_defined(db: &Session, org: OrgId, workflow: &str) -> DbResult<Option<Time>> {
    let sql = "SELECT created_at FROM workflow_definitions WHERE org = $1 AND workflow = $2 ORDER BY version LIMIT 1";
    Ok(db.one(sql, args![org.0, workflow]).await?.map(|row| Time(row.get(0))))
}
