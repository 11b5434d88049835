//! Rights and grants: their syntax, and the decision whether grants allow an action. Pure: `people.rs` reads grants.
//!
//! A grant is a name (`workflow.run`), or a kind of resource and a pattern for its names (`tool:mail.*`). `admin`
//! includes all rights in an organisation. `operator` is for administrators of the server; no other grant includes it.
//! An agent's key never administers: otherwise it could remove the rules that hold its own calls.

use std::collections::BTreeSet;
use std::fmt;

/// A right that a command may require.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Define,
    Run,
    Read,
    Approve,
    Admin,
    /// Manages the whole server: organisations and their plans.
    Operate,
}

impl Right {
    pub const ALL: [Right; 6] = [Right::Define, Right::Run, Right::Read, Right::Approve, Right::Admin, Right::Operate];

    pub fn name(self) -> &'static str {
        match self {
            Right::Define => "workflow.define",
            Right::Run => "workflow.run",
            Right::Read => "workflow.read",
            Right::Approve => "workflow.approve",
            Right::Admin => "admin",
            Right::Operate => "operator",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Kinds of resources that grants name by pattern.
const KINDS: [&str; 3] = ["tool", "connection", "secret"];

/// What a caller or a step needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need<'a> {
    Right(Right),
    Tool(&'a str),
    Connection(&'a str),
    /// Writing through a connection: `connection:NAME:write`.
    Write(&'a str),
    Secret(&'a str),
}

impl fmt::Display for Need<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Right(right) => f.write_str(right.name()),
            Need::Tool(name) => write!(f, "tool:{name}"),
            Need::Connection(name) => write!(f, "connection:{name}"),
            Need::Write(name) => write!(f, "connection:{name}:write"),
            Need::Secret(name) => write!(f, "secret:{name}"),
        }
    }
}

/// Checks the syntax of a grant. The error lists what is allowed.
pub fn check_grant(grant: &str) -> Result<(), String> {
    if Right::ALL.iter().any(|right| right.name() == grant) {
        return Ok(());
    }
    match grant.split_once(':') {
        Some((kind, pattern))
            if KINDS.contains(&kind) && !pattern.is_empty() && !pattern.contains(char::is_whitespace) =>
        {
            Ok(())
        }
        _ => {
            let names = Right::ALL.map(Right::name).join(", ");
            Err(format!("{grant:?} is not a grant; known: {names}, tool:PATTERN, connection:PATTERN, secret:PATTERN"))
        }
    }
}

/// A user's grants, limited by the grants of the key that was used.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Grants {
    user: BTreeSet<String>,
    /// `None` if the key does not limit the user's grants.
    key: Option<BTreeSet<String>>,
    /// An agent never administers, and may answer gates only if it was granted that right by name.
    agent: bool,
}

impl Grants {
    pub fn new(user: impl IntoIterator<Item = String>) -> Grants {
        Grants { user: user.into_iter().collect(), key: None, agent: false }
    }

    pub fn through_key(mut self, key: Option<impl IntoIterator<Item = String>>, agent: bool) -> Grants {
        self.key = key.map(|grants| grants.into_iter().collect());
        self.agent = agent;
        self
    }

    /// Whether a key limits the user's grants.
    pub fn is_narrowed(&self) -> bool {
        self.key.is_some()
    }

    pub fn is_agent(&self) -> bool {
        self.agent
    }

    pub fn allow(&self, need: Need<'_>) -> bool {
        match need {
            Need::Right(Right::Admin | Right::Operate) if self.agent => false,
            Need::Right(Right::Approve) if self.agent => {
                let by_name = |grants: &BTreeSet<String>| grants.contains(Right::Approve.name());
                allow(&self.user, need) && by_name(self.key.as_ref().unwrap_or(&self.user))
            }
            _ => allow(&self.user, need) && self.key.as_ref().is_none_or(|key| allow(key, need)),
        }
    }

    /// Whether a right to administer is missing only because the key is an agent's.
    pub fn is_withheld(&self, right: Right) -> bool {
        let administers = matches!(right, Right::Admin | Right::Operate);
        self.agent && administers && Grants { agent: false, ..self.clone() }.allow(Need::Right(right))
    }

    /// Whether these grants include everything that `grant` allows. A caller can only pass on what the caller has;
    /// an agent, which does not administer, passes on nothing.
    pub fn cover(&self, grant: &str) -> bool {
        let covered = |have: &BTreeSet<String>| {
            let by_admin = have.contains(Right::Admin.name()) && grant != Right::Operate.name();
            by_admin || have.contains(grant) || have.iter().any(|wide| covers(wide, grant))
        };
        covered(&self.user) && self.key.as_ref().is_none_or(covered)
    }

    /// The effective grants, as written.
    pub fn names(&self) -> Vec<String> {
        match &self.key {
            Some(key) => {
                key.iter().filter(|grant| Grants { key: None, ..self.clone() }.cover(grant)).cloned().collect()
            }
            None => self.user.iter().cloned().collect(),
        }
    }
}

fn allow(grants: &BTreeSet<String>, need: Need<'_>) -> bool {
    if need != Need::Right(Right::Operate) && grants.contains(Right::Admin.name()) {
        return true;
    }
    match need {
        Need::Right(right) => grants.contains(right.name()),
        Need::Tool(name) => any(grants, "tool", name),
        Need::Connection(name) => any(grants, "connection", name),
        Need::Write(name) => any(grants, "connection", &format!("{name}:write")),
        Need::Secret(name) => any(grants, "secret", name),
    }
}

fn any(grants: &BTreeSet<String>, kind: &str, name: &str) -> bool {
    let patterns = grants.iter().filter_map(|grant| grant.strip_prefix(kind)?.strip_prefix(':'));
    { patterns }.any(|pattern| matches(pattern, name))
}

/// `tool:*` covers `tool:mail.send` and `tool:mail.*`. Only a star at the end is considered: any other pattern covers
/// only itself.
fn covers(wide: &str, grant: &str) -> bool {
    wide.strip_suffix('*').is_some_and(|start| start.contains(':') && grant.starts_with(start))
}

/// Matches a name against a pattern. `*` stands for any number of characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.len() >= end.len() && left.ends_with(end)
}

/// The identity that an action runs as: a user, with or without one of the user's keys. Written as `ann#key_…` or
/// `ann`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Actor {
    pub user: String,
    pub key: Option<String>,
}

/// The local user, who has all rights: access to the data directory already allows everything.
const LOCAL: &str = "*";

impl Actor {
    /// The user of this machine.
    pub fn local() -> Actor {
        Actor { user: LOCAL.into(), key: None }
    }

    pub fn is_local(&self) -> bool {
        self.user == LOCAL
    }

    pub fn parse(text: &str) -> Actor {
        match text.split_once('#') {
            Some((user, key)) => Actor { user: user.into(), key: Some(key.into()) },
            None => Actor { user: text.into(), key: None },
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{}#{key}", self.user),
            None => f.write_str(&self.user),
        }
    }
}

/// The actors whose rights limit a run. Its row lists them separated by spaces.
pub fn actors(text: &str) -> impl Iterator<Item = Actor> {
    text.split(' ').filter(|name| !name.is_empty()).map(Actor::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(list: &[&str]) -> Grants {
        Grants::new(list.iter().map(|grant| grant.to_string()))
    }

    fn keyed(user: &[&str], key: &[&str], agent: bool) -> Grants {
        grants(user).through_key(Some(key.iter().map(|grant| grant.to_string())), agent)
    }

    #[test]
    fn a_pattern_matches_names() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("mail.send", "mail.send", true);
        check("mail.send", "mail.send2", false);
        check("*", "", true);
        check("mail.*", "mail.send", true);
        check("mail.*", "email.send", false);
        check("*.send", "mail.send", true);
        check("*.send", "mail.sender", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "acb", false);
        check("aa*aa", "aaa", false);
    }

    #[test]
    fn writing_through_a_connection_needs_its_own_grant() {
        for (grant, read, write) in [
            ("connection:crm", true, false),
            ("connection:crm:write", false, true),
            ("connection:*", true, true),
            ("connection:*:write", false, true),
            ("connection:cr", false, false),
            ("admin", true, true),
        ] {
            let have = grants(&[grant]);
            assert_eq!(have.allow(Need::Connection("crm")), read, "{grant}");
            assert_eq!(have.allow(Need::Write("crm")), write, "{grant}");
        }
    }

    #[test]
    fn a_key_limits_the_grants_of_its_user() {
        let both = keyed(&["workflow.run", "tool:mail.*"], &["tool:*"], false);
        assert!(both.allow(Need::Tool("mail.send")));
        assert!(!both.allow(Need::Tool("disk.format")));
        assert!(!both.allow(Need::Right(Right::Run)));
        assert!(keyed(&["admin"], &["workflow.read"], false).allow(Need::Right(Right::Read)));
        assert!(!keyed(&["admin"], &["workflow.read"], false).allow(Need::Right(Right::Run)));
        assert!(!keyed(&["workflow.read"], &["admin"], false).allow(Need::Right(Right::Run)));
    }

    #[test]
    fn an_agent_answers_gates_only_if_granted_by_name() {
        let approve = Need::Right(Right::Approve);
        assert!(grants(&["admin"]).allow(approve));
        assert!(!keyed(&["admin"], &["admin"], true).allow(approve));
        assert!(keyed(&["admin"], &["workflow.run"], true).allow(Need::Right(Right::Run)));
        assert!(keyed(&["admin"], &["workflow.approve"], true).allow(approve));
        assert!(!keyed(&["workflow.run"], &["workflow.approve"], true).allow(approve));
        assert!(!grants(&["admin"]).through_key(None::<Vec<String>>, true).allow(approve));
    }

    #[test]
    fn an_agent_never_administers_but_has_what_else_admin_includes() {
        for agent in
            [keyed(&["admin"], &["admin"], true), grants(&["admin", "operator"]).through_key(None::<Vec<_>>, true)]
        {
            assert!(!agent.allow(Need::Right(Right::Admin)) && !agent.allow(Need::Right(Right::Operate)));
            assert!(agent.allow(Need::Right(Right::Define)) && agent.allow(Need::Tool("mail.send")));
        }
    }

    #[test]
    fn a_caller_can_only_pass_on_grants_it_has() {
        assert!(grants(&["admin"]).cover("tool:*"));
        assert!(!grants(&["admin"]).cover("operator"));
        assert!(grants(&["tool:mail.*"]).cover("tool:mail.send"));
        assert!(!grants(&["tool:mail.*"]).cover("tool:*"));
        assert!(!keyed(&["admin"], &["workflow.run"], false).cover("workflow.define"));
        assert_eq!(keyed(&["workflow.run"], &["workflow.run", "admin"], false).names(), ["workflow.run"]);
    }

    #[test]
    fn an_invalid_grant_is_refused() {
        for good in ["admin", "operator", "workflow.run", "tool:*", "secret:API_KEY", "connection:crm"] {
            assert_eq!(check_grant(good), Ok(()), "{good}");
        }
        for bad in ["", "workflow.ruin", "tool:", "tool", "mcp:x", "tool:a b"] {
            assert!(check_grant(bad).is_err(), "{bad}");
        }
    }
}
