//! Who may answer, where, when and how: one table.

use crate::harness::{Harness, PERSON, hold, list, refusal};
use serde_json::{Value, json};
use stepwell_engine::commands::{Decision, NewKey, NewPolicy, UserChange};

const READER: &[&str] = &["workflow.run", "workflow.read", "tool:*"];

/// Where somebody is asked: a gate's fields, or a policy's approvers and whether the starter may approve.
enum Where {
    Gate(Value),
    Held(&'static [&'static str], bool),
}

/// What happens between the request and the answer.
#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    Nothing,
    /// The user keeps only these grants.
    Grants(&'static [&'static str]),
    /// The user loses their roles.
    NoRoles,
    Disabled,
    /// Time for others to be asked.
    Minutes(u64),
}

/// How somebody comes.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Person,
    Agent(Option<&'static [&'static str]>),
    Narrow(&'static [&'static str]),
    Link,
}

struct Case {
    who: &'static str,
    at: Where,
    meanwhile: Meanwhile,
    how: How,
    expected: &'static str,
}

/// `ann` starts every run; `bob` may approve; `boss` may all; `rob` may only read; `ops` has a role; `eve` is
/// asked later.
async fn harness() -> Harness {
    let harness = Harness::new().await;
    harness.engine.roles(&harness.admin).put("on_call", list(READER)).await.unwrap();
    for name in ["ann", "bob"] {
        harness.user(name, &[], PERSON).await;
    }
    harness.user("rob", &[], READER).await;
    harness.user("boss", &[], &["admin"]).await;
    harness.user("ops", &["on_call"], &[]).await;
    harness.user("eve", &[], READER).await;
    harness
}

/// Creates a key of the user for this way to answer.
async fn key(harness: &Harness, who: &str, how: How) -> String {
    let new = NewKey { user: Some(who.into()), name: "k".into(), ..NewKey::default() };
    let new = match how {
        How::Person | How::Link => new,
        How::Agent(grants) => NewKey { agent: true, grants: grants.map(list), ..new },
        How::Narrow(grants) => NewKey { grants: Some(list(grants)), ..new },
    };
    harness.secret(new).await
}

async fn told(case: &Case) -> &'static str {
    let harness = harness().await;
    let told = told_by(&harness, case).await;
    // Lets go of its connections.
    harness.engine.kill();
    told
}

async fn told_by(harness: &Harness, case: &Case) -> &'static str {
    let step = "step";
    match &case.at {
        Where::Gate(approval) => harness.define("w", json!({"step": {"approval": approval}})).await,
        Where::Held(approvers, allow_self) => {
            harness.define("w", json!({"step": {"tool": "ok", "args": {}}})).await;
            let policy = NewPolicy { approvers: list(approvers), allow_self: *allow_self, ..hold("tool:ok") };
            harness.policy("p", policy).await;
        }
    }
    let ann = harness.person("ann").await;
    let run = harness.start_as(&ann, "w", json!({})).await;
    let digest = harness.asked(&run, step).await.digest;
    let key = key(harness, case.who, case.how).await;
    let link = match case.how {
        How::Link => match harness.engine.gates(&harness.admin).link(&run, step, case.who).await {
            Ok(link) => Some(link),
            Err(error) => return refusal(&Err(error)),
        },
        _ => None,
    };
    match case.meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Grants(grants) => {
            harness.change(case.who, UserChange { grants: Some(list(grants)), ..UserChange::default() }).await;
        }
        Meanwhile::NoRoles => {
            harness.change(case.who, UserChange { roles: Some(vec![]), ..UserChange::default() }).await;
        }
        Meanwhile::Disabled => {
            harness.change(case.who, UserChange { disabled: Some(true), ..UserChange::default() }).await;
        }
        Meanwhile::Minutes(minutes) => harness.pass(minutes * 60).await,
    }
    let decision = Decision { approve: true, digest, ..Decision::default() };
    if let Some(link) = link {
        return refusal(&harness.engine.inbound().answer_link(&link, decision).await.map(|_| ()));
    }
    let Ok(caller) = harness.engine.identity().authenticate(&key).await else { return "unauthorised" };
    refusal(&harness.engine.gates(&caller).answer(&run, step, decision).await)
}

#[tokio::test(start_paused = true)]
async fn who_may_answer_where_when_and_how() {
    use How::*;
    use Meanwhile::*;
    let gate = || Where::Gate(json!({"message": "go?"}));
    let named = |names: Value| Where::Gate(json!({"message": "go?", "approvers": names}));
    let four_eyes = || Where::Gate(json!({"message": "go?", "allow_self": false}));
    let later = || {
        let fields = json!({"approvers": ["bob"], "escalate_to": ["eve"], "timeout": "4m", "escalate_after": "1m"});
        Where::Gate(fields)
    };
    let held = || Where::Held(&[], true);
    let case = |who, at, meanwhile, how, expected| Case { who, at, meanwhile, how, expected };
    let cases = vec![
        // Anyone who may approve, if no one is named.
        case("bob", gate(), Nothing, Person, "taken"),
        case("ann", gate(), Nothing, Person, "taken"),
        case("rob", gate(), Nothing, Person, "forbidden"),
        case("bob", held(), Nothing, Person, "taken"),
        case("ann", held(), Nothing, Person, "taken"),
        case("rob", held(), Nothing, Person, "forbidden"),
        // Those who are named, and no others; naming somebody is enough.
        case("rob", named(json!(["rob"])), Nothing, Person, "taken"),
        case("rob", named(json!("rob")), Nothing, Person, "taken"),
        case("bob", named(json!(["rob"])), Nothing, Person, "refused"),
        case("bob", Where::Held(&["rob"], true), Nothing, Person, "refused"),
        case("rob", Where::Held(&["rob"], true), Nothing, Person, "taken"),
        // By role, while they have it.
        case("ops", named(json!(["on_call"])), Nothing, Person, "taken"),
        case("ops", named(json!(["role:on_call"])), Nothing, Person, "taken"),
        case("bob", named(json!(["role:on_call"])), Nothing, Person, "refused"),
        case("ops", named(json!(["on_call"])), NoRoles, Person, "refused"),
        case("ops", Where::Held(&["role:on_call"], true), Nothing, Person, "taken"),
        // Four eyes.
        case("ann", four_eyes(), Nothing, Person, "refused"),
        case("bob", four_eyes(), Nothing, Person, "taken"),
        case("ann", Where::Held(&[], false), Nothing, Person, "refused"),
        case("bob", Where::Held(&[], false), Nothing, Person, "taken"),
        // Those who are asked later may answer only then.
        case("eve", later(), Nothing, Person, "refused"),
        case("eve", later(), Minutes(2), Person, "taken"),
        case("bob", later(), Minutes(2), Person, "taken"),
        case("bob", later(), Minutes(5), Person, "conflict"),
        // A right that was taken between request and answer.
        case("bob", gate(), Grants(READER), Person, "forbidden"),
        case("bob", held(), Grants(READER), Person, "forbidden"),
        case("bob", gate(), Disabled, Person, "unauthorised"),
        case("rob", named(json!(["rob"])), Disabled, Person, "unauthorised"),
        // Agents are barred unless they or their user have the grant by name; being named as an approver is not enough.
        case("boss", gate(), Nothing, Person, "taken"),
        case("boss", gate(), Nothing, Agent(None), "forbidden"),
        case("bob", gate(), Nothing, Agent(None), "taken"),
        case("bob", gate(), Nothing, Agent(Some(&["workflow.approve", "workflow.read"])), "taken"),
        case("boss", named(json!(["boss"])), Nothing, Agent(None), "forbidden"),
        case("boss", held(), Nothing, Agent(None), "forbidden"),
        case("bob", held(), Nothing, Agent(Some(&["workflow.approve", "workflow.read"])), "taken"),
        // A key that leaves less.
        case("bob", gate(), Nothing, Narrow(&["workflow.read"]), "forbidden"),
        case("bob", named(json!(["bob"])), Nothing, Narrow(&["workflow.read"]), "forbidden"),
        case("bob", gate(), Nothing, Narrow(&["workflow.approve"]), "taken"),
        // A link is its user, as they are when it is used.
        case("bob", gate(), Nothing, Link, "taken"),
        case("rob", gate(), Nothing, Link, "forbidden"),
        case("rob", named(json!(["rob"])), Nothing, Link, "taken"),
        case("ann", four_eyes(), Nothing, Link, "refused"),
        case("bob", gate(), Grants(READER), Link, "forbidden"),
        case("bob", gate(), Disabled, Link, "refused"),
        case("bob", held(), Nothing, Link, "taken"),
    ];
    for (n, case) in cases.iter().enumerate() {
        assert_eq!(told(case).await, case.expected, "case {n}: {}", case.who);
    }
}
