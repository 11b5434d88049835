//! Users and roles of an organisation. Each change is written together with its audit row.

use super::change::{change, current_auth, new_named, replace, retry_on_conflict};
use super::identity::LINK;
use super::input::{check_grants, check_name, invalid};
use super::{Identity, Roles, Users};
use crate::access::{BUILT_IN_ROLES, Right, Role, User};
use crate::error::Error;
use crate::records::{Kept, With, body, find, list, name_key, read};
use serde_json::{Value, json};
use stepwell_core::time::{Millis, Time};
use stepwell_store::{Change, OrgId, RecordChange};

/// How long a sign-in link is valid.
const LINK_LIFE: Millis = Millis::DAY;

/// A user to create.
#[derive(Clone, Default, Debug)]
pub struct NewUser {
    pub name: String,
    pub roles: Vec<String>,
    pub grants: Vec<String>,
}

/// Changes of a user. `None` keeps the current value.
#[derive(Clone, Default, Debug)]
pub struct UserChange {
    pub roles: Option<Vec<String>>,
    pub grants: Option<Vec<String>>,
    pub disabled: Option<bool>,
}

impl Users<'_> {
    /// The users of the organisation. Needs the right to administer.
    pub async fn list(&self) -> Result<Vec<With<User>>, Error> {
        self.caller.check(Right::Admin)?;
        list(&*self.rooms.cluster.store, self.caller.org).await
    }

    /// Returns a user by name or id. Needs the right to administer.
    pub async fn get(&self, user: &str) -> Result<With<User>, Error> {
        self.caller.check(Right::Admin)?;
        read(&find::<User>(&*self.rooms.cluster.store, self.caller.org, user).await?)
    }

    /// Creates a user. Needs the right to administer; the caller can only give its own rights.
    pub async fn create(&self, new: NewUser) -> Result<With<User>, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", &new.name)?;
        check_grants(self.caller, &new.grants)?;
        retry_on_conflict(|| self.create_once(new.clone())).await
    }

    async fn create_once(&self, new: NewUser) -> Result<With<User>, Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        self.check_roles(&new.roles).await?;
        let now = self.rooms.cluster.clock.now();
        let NewUser { name, roles, grants } = new;
        let user = User { name, roles, grants, disabled: false, created: now, by: self.caller.name.to_string() };
        let record = new_named(self.rooms, self.caller.org, "user", &user.name, &user);
        let detail = json!({"roles": user.roles, "grants": user.grants});
        let audit = vec![self.caller.audit(now, "user.create", &user.name, detail)];
        let id = record.id.clone();
        let records = vec![RecordChange::Create(record)];
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "user", &user.name).await?;
        Ok(With { id, is: user })
    }

    /// Changes a user. Needs the right to administer; the caller can only give its own rights.
    pub async fn change(&self, user: &str, to: UserChange) -> Result<With<User>, Error> {
        self.caller.check(Right::Admin)?;
        check_grants(self.caller, to.grants.as_deref().unwrap_or_default())?;
        let name = retry_on_conflict(|| self.change_once(user, to.clone())).await?;
        self.get(&name).await
    }

    /// Returns the user's name.
    async fn change_once(&self, user: &str, to: UserChange) -> Result<String, Error> {
        // Two administrators who revoke each other's rights must not both succeed.
        let decided = current_auth(self.rooms, self.caller.org).await?;
        self.check_roles(to.roles.as_deref().unwrap_or_default()).await?;
        let record = find::<User>(&*self.rooms.cluster.store, self.caller.org, user).await?;
        let mut user: User = body(&record)?;
        user.roles = to.roles.unwrap_or(user.roles);
        user.grants = to.grants.unwrap_or(user.grants);
        user.disabled = to.disabled.unwrap_or(user.disabled);
        self.check_admin_remains(Some(&user), None).await?;
        let detail = json!({"roles": user.roles, "grants": user.grants, "disabled": user.disabled});
        let audit = self.caller.audit(self.rooms.cluster.clock.now(), "user.change", &user.name, detail);
        replace(self.rooms, record, &user, audit, decided).await?;
        Ok(user.name)
    }

    /// Disables a user. The name stays taken, because the log refers to it. Needs the right to administer.
    pub async fn disable(&self, user: &str) -> Result<(), Error> {
        self.change(user, UserChange { disabled: Some(true), ..UserChange::default() }).await.map(|_| ())
    }

    /// Creates a link by which the caller can sign in once. Returns its secret. Needs the right to administer if it is
    /// for a given user, or if the caller uses a key.
    pub async fn sign_in_link(&self, user: Option<&str>) -> Result<String, Error> {
        let mut name = self.caller.name.to_string();
        if self.caller.key.is_some() || user.is_some() {
            self.caller.check(Right::Admin)?;
            // A session has all rights of its user.
            let user: User =
                body(&find::<User>(&*self.rooms.cluster.store, self.caller.org, user.unwrap_or(&name)).await?)?;
            check_grants(self.caller, &self.all_grants(self.caller.org, &user).await?)?;
            name = user.name;
        }
        let now = self.rooms.cluster.clock.now();
        let (session, secret) = Identity::new(self.rooms).new_session(self.caller.org, &name, LINK, now + LINK_LIFE);
        let audit = vec![self.caller.audit(now, "session.link", &name, Value::Null)];
        change(self.rooms, Change { records: vec![session], audit, grants_of: None, decided: None }, "session", "")
            .await?;
        Ok(secret)
    }

    async fn check_roles(&self, roles: &[String]) -> Result<(), Error> {
        for (n, role) in roles.iter().enumerate() {
            let Some(grants) = self.rooms.access.role_grants(self.caller.org, role).await? else {
                let known = Roles::new(self.rooms, self.caller)
                    .list()
                    .await?
                    .into_iter()
                    .map(|role| role.name)
                    .collect::<Vec<_>>()
                    .join(", ");
                return Err(invalid(
                    &format!("roles[{n}]"),
                    &format!("there is no role {role:?}; known roles: {known}"),
                ));
            };
            check_grants(self.caller, &grants)?;
        }
        Ok(())
    }

    /// The user's own grants and those of the user's roles.
    pub(super) async fn all_grants(&self, org: OrgId, user: &User) -> Result<Vec<String>, Error> {
        let mut grants = user.grants.clone();
        for role in &user.roles {
            grants.extend(self.rooms.access.role_grants(org, role).await?.unwrap_or_default());
        }
        Ok(grants)
    }

    /// Refuses a change that would leave the organisation without an administrator, or the server without an operator.
    async fn check_admin_remains(&self, user: Option<&User>, role: Option<&Role>) -> Result<(), Error> {
        let users: Vec<With<User>> = list(&*self.rooms.cluster.store, self.caller.org).await?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for With { is, .. } in users {
            let changed = user.filter(|user| user.name == is.name).unwrap_or(&is);
            before.extend(if is.disabled { Vec::new() } else { self.all_grants(self.caller.org, &is).await? });
            if changed.disabled {
                continue;
            }
            after.extend(changed.grants.clone());
            for name in &changed.roles {
                match role.filter(|role| role.name == *name) {
                    Some(role) => after.extend(role.grants.clone()),
                    None => {
                        after.extend(self.rooms.access.role_grants(self.caller.org, name).await?.unwrap_or_default())
                    }
                }
            }
        }
        for right in [Right::Admin, Right::Operate] {
            let has = |grants: &[String]| grants.iter().any(|grant| grant == right.name());
            if has(&before) && !has(&after) {
                return Err(Error::NotNow(format!("no user would be left with the right {right}")));
            }
        }
        Ok(())
    }
}

impl Roles<'_> {
    /// The built-in roles and the organisation's own. Needs the right to administer.
    pub async fn list(&self) -> Result<Vec<Role>, Error> {
        self.caller.check(Right::Admin)?;
        let built_in = |(name, grants): &(&str, &[&str])| Role {
            name: name.to_string(),
            grants: grants.iter().map(|grant| grant.to_string()).collect(),
            created: Time(0),
            by: "stepwell".into(),
        };
        let own: Vec<With<Role>> = list(&*self.rooms.cluster.store, self.caller.org).await?;
        Ok(BUILT_IN_ROLES.iter().map(built_in).chain(own.into_iter().map(|role| role.is)).collect())
    }

    /// Creates a role or changes its grants. Needs the right to administer.
    pub async fn put(&self, name: &str, grants: Vec<String>) -> Result<Role, Error> {
        self.caller.check(Right::Admin)?;
        check_name("name", name)?;
        check_grants(self.caller, &grants)?;
        if BUILT_IN_ROLES.iter().any(|(built_in, _)| *built_in == name) {
            return Err(Error::NotNow(format!("the role {name:?} is built in and cannot be changed")));
        }
        retry_on_conflict(|| self.put_once(name, grants.clone())).await
    }

    async fn put_once(&self, name: &str, grants: Vec<String>) -> Result<Role, Error> {
        let now = self.rooms.cluster.clock.now();
        let audit = self.caller.audit(now, "role.put", name, json!({"grants": grants}));
        let role = Role { name: name.to_string(), grants, created: now, by: self.caller.name.to_string() };
        let decided = current_auth(self.rooms, self.caller.org).await?;
        Users::new(self.rooms, self.caller).check_admin_remains(None, Some(&role)).await?;
        match self.rooms.cluster.store.record_with_key(Role::KIND, &name_key(self.caller.org, name)).await? {
            Some(record) => {
                let before: Role = body(&record)?;
                let role = Role { created: before.created, by: before.by, ..role };
                replace(self.rooms, record, &role, audit, decided).await?;
                Ok(role)
            }
            None => {
                let record = RecordChange::Create(new_named(self.rooms, self.caller.org, "role", name, &role));
                let (records, audit, grants_of) = (vec![record], vec![audit], Some(self.caller.org));
                let update = Change { records, audit, grants_of, decided: Some(decided) };
                change(self.rooms, update, "role", name).await?;
                Ok(role)
            }
        }
    }

    /// Removes a role that no user has. Needs the right to administer.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        self.caller.check(Right::Admin)?;
        retry_on_conflict(|| self.remove_once(name)).await
    }

    async fn remove_once(&self, name: &str) -> Result<(), Error> {
        let decided = current_auth(self.rooms, self.caller.org).await?;
        let record = find::<Role>(&*self.rooms.cluster.store, self.caller.org, name).await?;
        let users: Vec<With<User>> = list(&*self.rooms.cluster.store, self.caller.org).await?;
        if let Some(user) = users.iter().find(|user| user.is.roles.iter().any(|role| role == name)) {
            return Err(Error::NotNow(format!(
                "{} still has the role {name:?}: remove it from the user first",
                user.is.name
            )));
        }
        let audit = vec![self.caller.audit(self.rooms.cluster.clock.now(), "role.remove", name, Value::Null)];
        let records = vec![RecordChange::Remove { kind: Role::KIND.into(), id: record.id }];
        let update = Change { records, audit, grants_of: Some(self.caller.org), decided: Some(decided) };
        change(self.rooms, update, "role", name).await
    }
}
