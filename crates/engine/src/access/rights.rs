//! What somebody may do: grants, whom they belong to, and what a step needs. Pure: where grants come from is `people.rs`.
//!
//! A grant is a name (`workflow.run`), or a sort of thing and a pattern for its names (`tool:mail.*`). `admin` stands for
//! all of an organisation's; `operator` is for those who run the server, and nothing stands for it.

use std::collections::BTreeSet;
use std::fmt;

/// What a command may ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Right {
    Define,
    Run,
    Read,
    Approve,
    Admin,
    /// Of the server as a whole: organisations and their plans.
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

/// Sorts of things that grants name by pattern.
const SORTS: [&str; 3] = ["tool", "connection", "secret"];

/// What one step is about to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need<'a> {
    Right(Right),
    Tool(&'a str),
    Connection(&'a str),
    /// Through a connection: `connection:NAME:write`.
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

/// What is wrong with a grant, and how to mend it.
pub fn check_grant(grant: &str) -> Result<(), String> {
    if Right::ALL.iter().any(|right| right.name() == grant) {
        return Ok(());
    }
    match grant.split_once(':') {
        Some((sort, pattern))
            if SORTS.contains(&sort) && !pattern.is_empty() && !pattern.contains(char::is_whitespace) =>
        {
            Ok(())
        }
        _ => {
            let names = Right::ALL.map(Right::name).join(", ");
            Err(format!("{grant:?} is not a grant; known: {names}, tool:PATTERN, connection:PATTERN, secret:PATTERN"))
        }
    }
}

/// A user's grants, and what the key they came with leaves of them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Grants {
    user: BTreeSet<String>,
    /// Without a limit of its own a key may do what its user may.
    key: Option<BTreeSet<String>>,
    /// An agent never answers a gate unless it was given that right by name.
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

    /// A key leaves less than its user has.
    pub fn is_narrowed(&self) -> bool {
        self.key.is_some()
    }

    pub fn is_agent(&self) -> bool {
        self.agent
    }

    pub fn allow(&self, need: Need<'_>) -> bool {
        if self.agent && need == Need::Right(Right::Approve) {
            let by_name = |grants: &BTreeSet<String>| grants.contains(Right::Approve.name());
            return allow(&self.user, need) && by_name(self.key.as_ref().unwrap_or(&self.user));
        }
        allow(&self.user, need) && self.key.as_ref().is_none_or(|key| allow(key, need))
    }

    /// Whether everything that `grant` allows is allowed: nobody gives away what they do not have.
    pub fn cover(&self, grant: &str) -> bool {
        let by_name = self.agent && grant == Right::Approve.name();
        let covered = |have: &BTreeSet<String>| {
            let by_admin = have.contains(Right::Admin.name()) && grant != Right::Operate.name() && !by_name;
            by_admin || have.contains(grant) || have.iter().any(|wide| covers(wide, grant))
        };
        // What an agent has by name is in its key's list, if there is one.
        let user = if by_name && self.key.is_some() {
            allow(&self.user, Need::Right(Right::Approve))
        } else {
            covered(&self.user)
        };
        user && self.key.as_ref().is_none_or(covered)
    }

    /// By name, as given; what the key leaves of them.
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

fn any(grants: &BTreeSet<String>, sort: &str, name: &str) -> bool {
    let patterns = grants.iter().filter_map(|grant| grant.strip_prefix(sort)?.strip_prefix(':'));
    { patterns }.any(|pattern| matches(pattern, name))
}

/// `tool:*` covers `tool:mail.send` and `tool:mail.*`. Only an ending star is understood here: any other covers itself.
fn covers(wide: &str, grant: &str) -> bool {
    wide.strip_suffix('*').is_some_and(|start| start.contains(':') && grant.starts_with(start))
}

/// `*` stands for any characters, also none.
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

/// In whose name something is done: a user, through one of their keys or in person. Written as `ann#key_…` or `ann`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Actor {
    pub user: String,
    pub key: Option<String>,
}

/// Whoever can open the data directory can do anything with it already.
const LOCAL: &str = "*";

impl Actor {
    /// The person at this machine.
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

/// Everyone whose rights a run is limited to, as its row has them: separated by spaces.
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
    fn a_pattern_stands_for_the_names_it_looks_like() {
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
    fn writing_through_a_connection_is_a_right_of_its_own() {
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
    fn a_key_narrows_what_its_user_may() {
        let both = keyed(&["workflow.run", "tool:mail.*"], &["tool:*"], false);
        assert!(both.allow(Need::Tool("mail.send")));
        assert!(!both.allow(Need::Tool("disk.format")));
        assert!(!both.allow(Need::Right(Right::Run)));
        assert!(keyed(&["admin"], &["workflow.read"], false).allow(Need::Right(Right::Read)));
        assert!(!keyed(&["admin"], &["workflow.read"], false).allow(Need::Right(Right::Run)));
        assert!(!keyed(&["workflow.read"], &["admin"], false).allow(Need::Right(Right::Run)));
    }

    #[test]
    fn an_agent_answers_gates_only_if_it_was_given_that_right_by_name() {
        let approve = Need::Right(Right::Approve);
        assert!(grants(&["admin"]).allow(approve));
        assert!(!keyed(&["admin"], &["admin"], true).allow(approve));
        assert!(keyed(&["admin"], &["workflow.run"], true).allow(Need::Right(Right::Run)));
        assert!(keyed(&["admin"], &["workflow.approve"], true).allow(approve));
        assert!(!keyed(&["workflow.run"], &["workflow.approve"], true).allow(approve));
        assert!(!grants(&["admin"]).through_key(None::<Vec<String>>, true).allow(approve));
    }

    #[test]
    fn nobody_gives_away_what_they_do_not_have() {
        assert!(grants(&["admin"]).cover("tool:*"));
        assert!(!grants(&["admin"]).cover("operator"));
        assert!(grants(&["tool:mail.*"]).cover("tool:mail.send"));
        assert!(!grants(&["tool:mail.*"]).cover("tool:*"));
        assert!(!keyed(&["admin"], &["workflow.run"], false).cover("workflow.define"));
        assert_eq!(keyed(&["workflow.run"], &["workflow.run", "admin"], false).names(), ["workflow.run"]);
    }

    #[test]
    fn a_grant_that_means_nothing_is_named() {
        for good in ["admin", "operator", "workflow.run", "tool:*", "secret:API_KEY", "connection:crm"] {
            assert_eq!(check_grant(good), Ok(()), "{good}");
        }
        for bad in ["", "workflow.ruin", "tool:", "tool", "mcp:x", "tool:a b"] {
            assert!(check_grant(bad).is_err(), "{bad}");
        }
    }
}
