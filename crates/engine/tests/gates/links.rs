//! Approval links: what they show, what they decide, and how used, expired and forged ones are refused.

use crate::harness::{Harness, PERSON, hold, refusal};
use serde_json::json;
use stepwell_engine::commands::{Asks, Decision, NewKey, Retry};
use stepwell_engine::{Caller, Error};

async fn harness() -> (Harness, Caller, Caller, String) {
    let tasks = json!({"gate": {"approval": {"message": "go?", "timeout": "1h"}},
        "pay": {"needs": ["gate"], "tool": "ok", "args": {"sum": 3}}});
    let harness = Harness::with("w", tasks).await;
    let (ann, bob) = (harness.user("ann", &[], PERSON).await, harness.user("bob", &[], PERSON).await);
    let run = harness.start("w").await;
    harness.asked(&run, "gate").await;
    (harness, ann, bob, run)
}

fn over(asks: &Asks) -> &str {
    match asks {
        Asks::Over(words) => words,
        Asks::Open(open) => panic!("still open: {open:?}"),
    }
}

async fn yes(harness: &Harness, run: &str) -> Decision {
    Decision { approve: true, digest: harness.asked(run, "gate").await.digest, ..Decision::default() }
}

#[tokio::test(start_paused = true)]
async fn a_link_shows_what_is_asked_decides_once_and_then_says_what_became_of_it() {
    let (harness, ann, bob, run) = harness().await;
    let link = harness.engine.gates(&ann).link(&run, "gate", "ann").await.unwrap();
    let others = harness.engine.gates(&bob).link(&run, "gate", "bob").await.unwrap();
    for _ in 0..3 {
        let linked = harness.engine.inbound().linked(&link).await.unwrap();
        let Asks::Open(open) = linked.asks else { panic!("{:?}", linked.asks) };
        assert_eq!((&*linked.caller.name, &open.asks["calls"][0]["input"]["args"]), ("ann", &json!({"sum": 3})));
    }
    assert_eq!(harness.view(&run).await.status, "paused");
    let decision = yes(&harness, &run).await;
    let blind = Decision { digest: None, ..decision.clone() };
    assert_eq!(refusal(&harness.engine.inbound().answer_link(&link, blind).await.map(|_| ())), "input");
    harness.engine.inbound().answer_link(&link, decision.clone()).await.unwrap();
    assert_eq!(harness.ended(&run).await.status, "completed");
    for link in [&link, &others] {
        let again = harness.engine.inbound().answer_link(link, decision.clone()).await.unwrap();
        assert_eq!(over(&again.asks), "It was approved by ann.");
    }
    assert_eq!(harness.called(), ["pay"]);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_was_changed_leads_nowhere() {
    use base64::Engine;
    let (harness, ann, _, run) = harness().await;
    let link = harness.engine.gates(&ann).link(&run, "gate", "ann").await.unwrap();
    let parts: Vec<&str> = link.split('.').collect();
    let base64 = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let about = String::from_utf8(base64.decode(parts[1]).unwrap()).unwrap();
    let as_bob = format!("{}.{}.{}", parts[0], base64.encode(about.replace("ann", "bob")), parts[2]);
    let short = format!("{}.{}.{}", parts[0], parts[1], &parts[2][..8]);
    let other = harness.start("w").await;
    let elsewhere = format!("{other}.{}.{}", parts[1], parts[2]);
    for forged in [as_bob, short, elsewhere, String::new(), "run_x.y.z".into(), format!("{link}x")] {
        let answer = harness.engine.inbound().linked(&forged).await;
        assert!(matches!(answer, Err(Error::NotFound { .. })), "{forged}: {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_is_for_what_was_asked_when_it_was_made() {
    let (harness, ann, _, run) = harness().await;
    let link = harness.engine.gates(&ann).link(&run, "gate", "ann").await.unwrap();
    harness.answer(&harness.admin, &run, "gate", false).await.unwrap();
    harness.ended(&run).await;
    assert_eq!(over(&harness.engine.inbound().linked(&link).await.unwrap().asks), "It was denied by admin.");
    harness.engine.runs(&harness.admin).retry(&run, Retry::SameVersion).await.unwrap();
    harness.asked(&run, "gate").await;
    assert!(over(&harness.engine.inbound().linked(&link).await.unwrap().asks).contains("out of date"));
    let now = yes(&harness, &run).await;
    over(&harness.engine.inbound().answer_link(&link, now).await.unwrap().asks);
    assert_eq!(harness.view(&run).await.status, "paused");
    let link = harness.engine.gates(&ann).link(&run, "gate", "ann").await.unwrap();
    harness.pass(7_200).await;
    assert_eq!(
        over(&harness.engine.inbound().linked(&link).await.unwrap().asks),
        "This was not answered in time and counts as denied."
    );
}

#[tokio::test(start_paused = true)]
async fn a_link_of_a_run_that_was_cancelled_says_so() {
    let (harness, ann, _, run) = harness().await;
    let link = harness.engine.gates(&ann).link(&run, "gate", "ann").await.unwrap();
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    harness.ended(&run).await;
    assert_eq!(
        over(&harness.engine.inbound().linked(&link).await.unwrap().asks),
        "The run ended before this was answered."
    );
}

#[tokio::test(start_paused = true)]
async fn people_make_links_for_themselves_and_keys_that_may_less_make_none() {
    let (harness, ann, _, run) = harness().await;
    let other = harness.engine.gates(&ann).link(&run, "gate", "bob").await;
    assert_eq!(refusal(&other.map(|_| ())), "forbidden");
    assert!(harness.engine.gates(&harness.admin).link(&run, "gate", "bob").await.is_ok());
    let new = NewKey { user: Some("ann".into()), name: "k".into(), ..NewKey::default() };
    for key in [NewKey { agent: true, ..new.clone() }, NewKey { grants: Some(vec!["workflow.read".into()]), ..new }] {
        let caller = harness.key(key).await;
        assert_eq!(refusal(&harness.engine.gates(&caller).link(&run, "gate", "ann").await.map(|_| ())), "refused");
    }
    let refused = harness.engine.gates(&harness.admin).link(&run, "gate", "nobody").await;
    assert_eq!(refusal(&refused.map(|_| ())), "refused");
}

#[tokio::test(start_paused = true)]
async fn a_link_to_a_held_call_says_who_approved_it() {
    let harness = Harness::with("w", json!({"pay": {"tool": "hang", "args": {}}})).await;
    harness.user("ann", &[], PERSON).await;
    harness.policy("money", hold("tool:hang")).await;
    let run = harness.start("w").await;
    harness.asked(&run, "pay").await;
    let link = harness.engine.gates(&harness.admin).link(&run, "pay", "ann").await.unwrap();
    let Asks::Open(open) = harness.engine.inbound().linked(&link).await.unwrap().asks else { panic!("it is over") };
    let decision = Decision { approve: true, digest: open.digest, ..Decision::default() };
    harness.engine.inbound().answer_link(&link, decision).await.unwrap();
    harness.pass(1).await;
    assert_eq!(over(&harness.engine.inbound().linked(&link).await.unwrap().asks), "It was approved by ann.");
}
