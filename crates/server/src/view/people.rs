//! Users, roles, keys, organisations and the audit trail.

use super::Instant;
use serde::{Deserialize, Serialize};
use stepwell_engine::commands::{Organisation, Usage, With};
use stepwell_engine::doctor::{Anchor, Heads, WriterHead};
use stepwell_engine::{Caller, Key, Limits, Role, User};
use stepwell_store::AuditRow;
use utoipa::ToSchema;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserView {
    pub id: String,
    pub name: String,
    pub roles: Vec<String>,
    /// In addition to the grants of the roles.
    pub grants: Vec<String>,
    pub disabled: bool,
    pub created_at: Instant,
    pub created_by: String,
}

impl From<With<User>> for UserView {
    fn from(With { id, is }: With<User>) -> UserView {
        let User { name, roles, grants, disabled, created, by } = is;
        UserView { id, name, roles, grants, disabled, created_at: created.into(), created_by: by }
    }
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUserRequest {
    pub name: String,
    #[serde(default)]
    pub roles: Vec<String>,
    #[serde(default)]
    pub grants: Vec<String>,
}

/// Only the given fields are changed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserChangeRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct RoleView {
    pub name: String,
    pub grants: Vec<String>,
    /// Built in; cannot be changed.
    pub built_in: bool,
}

impl From<Role> for RoleView {
    fn from(role: Role) -> RoleView {
        RoleView { built_in: role.created.0 == 0, name: role.name, grants: role.grants }
    }
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleRequest {
    pub grants: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct KeyView {
    pub id: String,
    pub name: String,
    pub user: String,
    /// An agent's key: never administers, and cannot answer gates unless it lists `workflow.approve` explicitly.
    pub agent: bool,
    /// Restricts the user's grants; without a list the key has all of them.
    #[serde(default)]
    pub grants: Option<Vec<String>>,
    /// The first characters of the key.
    pub start: String,
    pub created_at: Instant,
    pub created_by: String,
    #[serde(default)]
    pub expires_at: Option<Instant>,
    #[serde(default)]
    pub revoked_at: Option<Instant>,
    pub paused: bool,
    /// Accurate to the minute.
    #[serde(default)]
    pub last_used_at: Option<Instant>,
}

impl From<With<Key>> for KeyView {
    fn from(With { id, is: key }: With<Key>) -> KeyView {
        KeyView {
            id,
            name: key.name,
            user: key.user,
            agent: key.agent,
            grants: key.grants,
            start: key.start,
            created_at: key.created.into(),
            created_by: key.by,
            expires_at: key.expires.map(Instant),
            revoked_at: key.revoked.map(Instant),
            paused: key.paused,
            last_used_at: key.used.map(Instant),
        }
    }
}

/// A new key. The key itself is shown only here.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewKeyView {
    /// `sw_…`.
    pub key: String,
    #[serde(flatten)]
    pub is: KeyView,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewKeyRequest {
    /// You, if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    pub name: String,
    pub agent: bool,
    /// Restricts the user's grants; without a list the key has all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
}

/// Only the given fields are changed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyChangeRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct OrganisationView {
    pub id: i64,
    pub name: String,
    pub plan: String,
    pub limits: LimitsView,
}

/// Omitted fields are unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsView {
    pub workflows: Option<u32>,
    pub tasks_per_workflow: Option<u32>,
    pub concurrent_runs: Option<u32>,
    pub executions_per_month: Option<u64>,
    /// Never more than the server's setting.
    pub descendants_per_run: Option<u32>,
    /// Bytes of all inputs and results of one run.
    pub run_bytes: Option<u64>,
    /// Whether cron triggers are allowed; true by default.
    pub cron: Option<bool>,
}

impl From<Limits> for LimitsView {
    fn from(limits: Limits) -> LimitsView {
        LimitsView {
            workflows: limits.workflows,
            tasks_per_workflow: limits.tasks_per_workflow,
            concurrent_runs: limits.concurrent_runs,
            executions_per_month: limits.executions_per_month,
            descendants_per_run: limits.descendants_per_run,
            run_bytes: limits.run_bytes,
            cron: Some(!limits.no_cron),
        }
    }
}

impl From<LimitsView> for Limits {
    fn from(view: LimitsView) -> Limits {
        Limits {
            workflows: view.workflows,
            tasks_per_workflow: view.tasks_per_workflow,
            concurrent_runs: view.concurrent_runs,
            executions_per_month: view.executions_per_month,
            descendants_per_run: view.descendants_per_run,
            run_bytes: view.run_bytes,
            no_cron: view.cron == Some(false),
        }
    }
}

impl From<Organisation> for OrganisationView {
    fn from(organisation: Organisation) -> OrganisationView {
        let Organisation { id, name, plan, limits } = organisation;
        OrganisationView { id: id.0, name, plan, limits: limits.into() }
    }
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrganisationRequest {
    pub name: String,
    #[serde(default)]
    pub plan: Option<String>,
}

/// A new organisation with the key of its first user, `admin`. The key is shown only here.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewOrganisationView {
    #[serde(flatten)]
    pub is: OrganisationView,
    pub admin_key: String,
}

/// Another plan, or custom limits in place of a plan's.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanRequest {
    pub plan: Option<String>,
    #[serde(deserialize_with = "crate::body::maybe_object")]
    pub limits: Option<LimitsView>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageView {
    pub organisation: OrganisationView,
    /// For example `2026-11`.
    pub month: String,
    /// Steps executed in this month.
    pub executions: u64,
    /// Runs that have not ended.
    pub open_runs: u64,
    pub workflows: u64,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> UsageView {
        let Usage { organisation, month, executions, open_runs, workflows } = usage;
        UsageView { organisation: organisation.into(), month, executions, open_runs, workflows }
    }
}

/// The authenticated caller.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub user: String,
    pub organisation: OrganisationView,
    /// What you may do with these credentials.
    pub grants: Vec<String>,
    pub agent: bool,
    /// The id of your key; none in a browser session.
    #[serde(default)]
    pub key: Option<String>,
}

impl Me {
    pub fn new(caller: &Caller, organisation: Organisation) -> Me {
        Me {
            user: caller.name.to_string(),
            organisation: organisation.into(),
            grants: caller.grants.names(),
            agent: caller.grants.is_agent(),
            key: caller.key.as_ref().map(|key| key.to_string()),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditView {
    pub id: i64,
    pub at: Instant,
    pub by: String,
    /// For example `run.cancel`.
    pub action: String,
    /// The target of the action.
    pub target: String,
    #[schema(value_type = serde_json::Value)]
    pub detail: serde_json::Value,
    /// Hash over this row and the previous one.
    pub hash: String,
}

impl From<AuditRow> for AuditView {
    fn from(AuditRow { id, row, hash, .. }: AuditRow) -> AuditView {
        AuditView {
            id,
            at: row.at.into(),
            by: row.by,
            action: row.action,
            target: row.target,
            detail: serde_json::from_str(&row.detail).unwrap_or_default(),
            hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Whether the audit trail was tampered with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditVerdict {
    pub rows: u64,
    /// The first row with a wrong hash; none if the trail is intact.
    #[serde(default)]
    pub broken_at: Option<i64>,
}

/// The heads of the audit trail at some time, with a signature. As a line of JSON it is for `doctor --anchor`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchorView {
    pub anchor: AnchorHeadsView,
    /// HMAC over `anchor`, in hexadecimal.
    pub signature: String,
}

/// What an anchor signs, to the letter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchorHeadsView {
    /// Milliseconds since 1970, as they are signed.
    pub at: i64,
    /// The id of the key that signs. Without one, anyone can compute the signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub writers: Vec<AnchorWriterView>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct AnchorWriterView {
    pub writer: i32,
    /// How often the writer's tally was written.
    pub number: i64,
    /// Audit rows that it has written.
    pub rows: i64,
    /// A hash over them, in hexadecimal.
    pub head: String,
}

impl From<Anchor> for AnchorView {
    fn from(anchor: Anchor) -> AnchorView {
        let Heads { at, key, writers } = anchor.anchor;
        let writers = writers.into_iter().map(|WriterHead { writer, number, rows, head }| AnchorWriterView {
            writer,
            number,
            rows,
            head,
        });
        AnchorView {
            anchor: AnchorHeadsView { at: at.0, key, writers: writers.collect() },
            signature: anchor.signature,
        }
    }
}

/// A link that signs in one browser, once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkView {
    pub url: String,
}
