//! What becomes of a message: attempts, crashes, several nodes, dead channels, floods.

use crate::rig::{Mood, Rig};
use std::collections::BTreeSet;
use std::time::Duration;
use stepwell_core::time::{Millis, Time};
use stepwell_engine::commands::{Decision, Trigger};
use stepwell_engine::notify::Progress;

fn seconds(times: &[Time]) -> Vec<u64> {
    times.iter().map(|time| time.since(times[0]).0 / 1_000).collect()
}

#[tokio::test(start_paused = true)]
async fn attempts_come_further_and_further_apart_until_it_is_given_up() {
    let rig = Rig::new().await;
    rig.of_organisation("busy").await;
    rig.book.mood("busy", Mood::Busy);
    rig.start(&rig.admin, "fails").await;
    rig.book.until(8).await;
    rig.settled().await;
    let pauses: Vec<u64> = seconds(&rig.book.times("busy")).windows(2).map(|two| two[1] - two[0]).collect();
    for (pause, least) in pauses.iter().zip([5, 15, 45, 135, 405, 1_215, 1_800]) {
        assert!((least..least + 6).contains(pause), "{pauses:?}");
    }
    let all = rig.notifications(&rig.admin).await;
    assert_eq!((all[0].progress, all[0].attempts, all[0].error.as_deref()), (Progress::Failed, 8, Some("busy")));
    let ids: BTreeSet<String> = rig.book.sent.borrow().iter().map(|sent| sent.parcel.id.clone()).collect();
    assert_eq!(ids.len(), 1, "a receiver must be able to tell a repetition");
    // It can be seen for a week.
    tokio::time::sleep(Duration::from_secs(8 * 86_400)).await;
    assert!(rig.notifications(&rig.admin).await.is_empty());
    assert_eq!(rig.book.sent.borrow().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_arrives_late_is_sent_once_more_and_then_never_again() {
    let rig = Rig::new().await;
    rig.of_organisation("busy").await;
    rig.book.mood("busy", Mood::Busy);
    rig.start(&rig.admin, "fails").await;
    rig.book.until(2).await;
    rig.book.mood("busy", Mood::Good);
    rig.settled().await;
    rig.quiet().await;
    assert_eq!(rig.book.sent.borrow().len(), 3);
    let all = rig.notifications(&rig.admin).await;
    assert_eq!((all[0].progress, all[0].attempts, &all[0].error), (Progress::Sent, 3, &None));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_not_tried_again() {
    let rig = Rig::new().await;
    rig.of_organisation("closed").await;
    rig.book.mood("closed", Mood::Closed);
    rig.start(&rig.admin, "fails").await;
    rig.book.until(1).await;
    rig.quiet().await;
    assert_eq!(rig.book.sent.borrow().len(), 1);
    assert_eq!(rig.notifications(&rig.admin).await[0].progress, Progress::Failed);
}

#[tokio::test(start_paused = true)]
async fn of_several_nodes_one_sends() {
    let rig = Rig::new().await;
    let others = [rig.another().await, rig.another().await];
    rig.of_organisation("all").await;
    for n in 0..15 {
        let engine = if n % 3 == 0 { &rig.engine } else { &others[n % 2] };
        engine.runs(&rig.admin).trigger(Trigger::new("fails", serde_json::json!({}))).await.unwrap();
    }
    rig.book.until(15).await;
    rig.quiet().await;
    assert_eq!(rig.book.sent.borrow().len(), 15);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_by_a_process_that_is_gone_is_told_by_the_next() {
    let rig = Rig::new().await;
    rig.of_organisation("all").await;
    let run = rig.start(&rig.admin, "asks").await;
    rig.book.until(1).await;
    rig.settled().await;
    rig.engine.kill();
    // The answer is written where nobody sends anything.
    let resting = rig.at_rest();
    resting.gates(&rig.admin).answer(&run, "ask", Decision { approve: false, ..Decision::default() }).await.unwrap();
    assert_eq!(rig.book.through("all"), ["gate_opened ask"]);
    let _next = rig.another().await;
    rig.book.until(2).await;
    assert_eq!(rig.book.through("all"), ["gate_opened ask", "gate_answered ask"]);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_a_node_that_died_is_made_by_another_under_the_same_id() {
    let rig = Rig::new().await;
    rig.of_organisation("all").await;
    rig.book.mood("all", Mood::Silent);
    rig.start(&rig.admin, "fails").await;
    rig.book.until(1).await;
    rig.engine.kill();
    rig.book.mood("all", Mood::Good);
    let next = rig.another().await;
    rig.book.until(2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let ids: Vec<String> = rig.book.sent.borrow().iter().map(|sent| sent.parcel.id.clone()).collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
    let (all, _) = next.channels(&rig.admin).notifications(None, 10).await.unwrap();
    assert_eq!(all[0].is.progress, Progress::Sent);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_was_answered_meanwhile_is_not_announced_any_more() {
    let rig = Rig::new().await;
    rig.of_organisation("all").await;
    rig.book.mood("all", Mood::Busy);
    let run = rig.start(&rig.admin, "asks").await;
    rig.book.until(1).await;
    rig.answer(&rig.admin, &run, true).await;
    rig.book.until(2).await;
    rig.book.mood("all", Mood::Good);
    rig.settled().await;
    rig.quiet().await;
    assert_eq!(rig.book.through("all"), ["gate_opened ask", "gate_answered ask", "gate_answered ask"]);
    let all = rig.notifications(&rig.admin).await;
    let opened = all.iter().find(|delivery| delivery.message.topic.asks()).unwrap();
    assert_eq!(opened.progress, Progress::Dropped);
}

#[tokio::test(start_paused = true)]
async fn a_dead_channel_holds_up_neither_others_nor_runs() {
    let rig = Rig::new().await;
    rig.of_organisation("dead").await;
    rig.of_organisation("alive").await;
    rig.book.mood("dead", Mood::Silent);
    let begun = tokio::time::Instant::now();
    for _ in 0..15 {
        let run = rig.start(&rig.admin, "fails").await;
        rig.engine.runs(&rig.admin).wait(&run).await.unwrap();
    }
    while rig.book.through("alive").len() < 15 {
        rig.book.sent.subscribe().changed().await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert!(rig.book.through("dead").len() <= 4, "only so many at a time");
}

#[tokio::test(start_paused = true)]
async fn many_messages_come_one_after_the_other() {
    let rig = Rig::new().await;
    rig.of_organisation("all").await;
    for _ in 0..50 {
        rig.start(&rig.admin, "fails").await;
    }
    rig.book.until(50).await;
    rig.quiet().await;
    let times = rig.book.times("all");
    assert_eq!(times.len(), 50);
    for window in times.windows(21) {
        assert!(window[20].since(window[0]) >= Millis(500), "{:?}", seconds(&times));
    }
    assert!(times[49].since(times[0]) >= Millis::from_secs(25), "{:?}", seconds(&times));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_channel_that_is_removed_is_dropped() {
    let rig = Rig::new().await;
    let channel = rig.of_organisation("all").await;
    rig.book.mood("all", Mood::Busy);
    rig.start(&rig.admin, "fails").await;
    rig.book.until(1).await;
    rig.engine.channels(&rig.admin).remove(&channel.id).await.unwrap();
    rig.settled().await;
    rig.quiet().await;
    assert_eq!(rig.notifications(&rig.admin).await[0].progress, Progress::Dropped);
    assert_eq!(rig.book.sent.borrow().len(), 1);
}
