//! Deliveries: attempts, crashes, several nodes, dead channels, floods.

use crate::harness::{Harness, Mood};
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
    let harness = Harness::new().await;
    harness.of_organisation("busy").await;
    harness.recorder.mood("busy", Mood::Busy);
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(8).await;
    harness.settled().await;
    let pauses: Vec<u64> = seconds(&harness.recorder.times("busy")).windows(2).map(|two| two[1] - two[0]).collect();
    for (pause, least) in pauses.iter().zip([5, 15, 45, 135, 405, 1_215, 1_800]) {
        assert!((least..least + 6).contains(pause), "{pauses:?}");
    }
    let all = harness.notifications(&harness.admin).await;
    assert_eq!((all[0].progress, all[0].attempts, all[0].error.as_deref()), (Progress::Failed, 8, Some("busy")));
    let ids: BTreeSet<String> = harness.recorder.sent.borrow().iter().map(|sent| sent.parcel.id.clone()).collect();
    assert_eq!(ids.len(), 1, "a receiver must be able to tell a repetition");
    // It can be seen for a week.
    harness.engine.shutdown(Duration::ZERO).await;
    for (days, seen) in [(6, 1), (8, 0)] {
        let later = harness.later(Millis(days * Millis::DAY.0)).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let (found, _) = later.channels(&harness.admin).notifications(None, 10).await.unwrap();
        assert_eq!(found.len(), seen, "after {days} days");
        later.shutdown(Duration::ZERO).await;
    }
    assert_eq!(harness.recorder.sent.borrow().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_arrives_late_is_sent_once_more_and_then_never_again() {
    let harness = Harness::new().await;
    harness.of_organisation("busy").await;
    harness.recorder.mood("busy", Mood::Busy);
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(2).await;
    harness.recorder.mood("busy", Mood::Good);
    harness.settled().await;
    harness.quiet().await;
    assert_eq!(harness.recorder.sent.borrow().len(), 3);
    let all = harness.notifications(&harness.admin).await;
    assert_eq!((all[0].progress, all[0].attempts, &all[0].error), (Progress::Sent, 3, &None));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_not_tried_again() {
    let harness = Harness::new().await;
    harness.of_organisation("closed").await;
    harness.recorder.mood("closed", Mood::Closed);
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(1).await;
    harness.quiet().await;
    assert_eq!(harness.recorder.sent.borrow().len(), 1);
    assert_eq!(harness.notifications(&harness.admin).await[0].progress, Progress::Failed);
}

#[tokio::test(start_paused = true)]
async fn of_several_nodes_one_sends() {
    let harness = Harness::new().await;
    let others = [harness.another().await, harness.another().await];
    harness.of_organisation("all").await;
    for n in 0..15 {
        let engine = if n % 3 == 0 { &harness.engine } else { &others[n % 2] };
        engine.runs(&harness.admin).trigger(Trigger::new("fails", serde_json::json!({}))).await.unwrap();
    }
    harness.recorder.until(15).await;
    harness.quiet().await;
    assert_eq!(harness.recorder.sent.borrow().len(), 15);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_by_a_process_that_is_gone_is_told_by_the_next() {
    let harness = Harness::new().await;
    harness.of_organisation("all").await;
    let run = harness.start(&harness.admin, "asks").await;
    harness.recorder.until(1).await;
    harness.settled().await;
    harness.engine.kill();
    // The answer is written where no one sends anything.
    let resting = harness.at_rest();
    resting
        .gates(&harness.admin)
        .answer(&run, "ask", Decision { approve: false, ..Decision::default() })
        .await
        .unwrap();
    assert_eq!(harness.recorder.through("all"), ["gate_opened ask"]);
    let _next = harness.another().await;
    harness.recorder.until(2).await;
    assert_eq!(harness.recorder.through("all"), ["gate_opened ask", "gate_answered ask"]);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_of_a_node_that_died_is_made_by_another_under_the_same_id() {
    let harness = Harness::new().await;
    harness.of_organisation("all").await;
    harness.recorder.mood("all", Mood::Silent);
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(1).await;
    harness.engine.kill();
    harness.recorder.mood("all", Mood::Good);
    let next = harness.another().await;
    harness.recorder.until(2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let ids: Vec<String> = harness.recorder.sent.borrow().iter().map(|sent| sent.parcel.id.clone()).collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
    let (all, _) = next.channels(&harness.admin).notifications(None, 10).await.unwrap();
    assert_eq!(all[0].is.progress, Progress::Sent);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_was_answered_meanwhile_is_not_announced_any_more() {
    let harness = Harness::new().await;
    harness.of_organisation("all").await;
    harness.recorder.mood("all", Mood::Busy);
    let run = harness.start(&harness.admin, "asks").await;
    harness.recorder.until(1).await;
    harness.answer(&harness.admin, &run, true).await;
    harness.recorder.until(2).await;
    harness.recorder.mood("all", Mood::Good);
    harness.settled().await;
    harness.quiet().await;
    assert_eq!(harness.recorder.through("all"), ["gate_opened ask", "gate_answered ask", "gate_answered ask"]);
    let all = harness.notifications(&harness.admin).await;
    let opened = all.iter().find(|delivery| delivery.message.topic.asks()).unwrap();
    assert_eq!(opened.progress, Progress::Dropped);
}

#[tokio::test(start_paused = true)]
async fn a_dead_channel_holds_up_neither_others_nor_runs() {
    let harness = Harness::new().await;
    harness.of_organisation("dead").await;
    harness.of_organisation("alive").await;
    harness.recorder.mood("dead", Mood::Silent);
    let begun = tokio::time::Instant::now();
    for _ in 0..15 {
        let run = harness.start(&harness.admin, "fails").await;
        harness.engine.runs(&harness.admin).wait(&run).await.unwrap();
    }
    while harness.recorder.through("alive").len() < 15 {
        harness.recorder.sent.subscribe().changed().await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert!(harness.recorder.through("dead").len() <= 4, "only so many at a time");
}

#[tokio::test(start_paused = true)]
async fn many_messages_come_one_after_the_other() {
    let harness = Harness::new().await;
    harness.of_organisation("all").await;
    for _ in 0..50 {
        harness.start(&harness.admin, "fails").await;
    }
    harness.recorder.until(50).await;
    harness.quiet().await;
    let times = harness.recorder.times("all");
    assert_eq!(times.len(), 50);
    for window in times.windows(21) {
        assert!(window[20].since(window[0]) >= Millis(500), "{:?}", seconds(&times));
    }
    assert!(times[49].since(times[0]) >= Millis::from_secs(25), "{:?}", seconds(&times));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_channel_that_is_removed_is_dropped() {
    let harness = Harness::new().await;
    let channel = harness.of_organisation("all").await;
    harness.recorder.mood("all", Mood::Busy);
    harness.start(&harness.admin, "fails").await;
    harness.recorder.until(1).await;
    harness.engine.channels(&harness.admin).remove(&channel.id).await.unwrap();
    harness.settled().await;
    harness.quiet().await;
    assert_eq!(harness.notifications(&harness.admin).await[0].progress, Progress::Dropped);
    assert_eq!(harness.recorder.sent.borrow().len(), 1);
}
