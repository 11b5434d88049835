//! A panic loses nothing and blocks nothing for ever.

use crate::harness::{Harness, START, chain, failure};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use stepwell_core::event::{Outcome, Reply};
use stepwell_core::time::Time;
use stepwell_engine::{Clock, Config, Kinds, SecretSource, StepCall, StepKind, TokioClock};
use stepwell_store::OrgId;
use stepwell_testing::Tools;

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "as asked, when it is dropped");
    }
}

/// A clock that panics as often as it is told to.
#[derive(Clone)]
struct BadClock {
    clock: TokioClock,
    panics: Arc<AtomicU32>,
    told: Arc<AtomicU32>,
}

impl BadClock {
    fn new() -> BadClock {
        BadClock { clock: TokioClock::starting_at(START), panics: Arc::default(), told: Arc::default() }
    }

    fn panic(&self, times: u32) {
        self.told.fetch_add(1, Ordering::SeqCst);
        self.panics.store(times, Ordering::SeqCst);
    }
}

impl Clock for BadClock {
    fn now(&self) -> Time {
        let left = self.panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "as asked, by the clock");
        self.clock.now()
    }
}

struct BadSecrets;

#[async_trait]
impl SecretSource for BadSecrets {
    async fn secret(&self, _org: OrgId, _name: &str) -> Option<String> {
        panic!("as asked, by a secret")
    }
}

/// Tools that panic at different moments.
struct BadTools {
    tools: Tools,
    clock: BadClock,
}

#[async_trait]
impl StepKind for BadTools {
    async fn run(&self, call: StepCall) -> Outcome {
        match call.input["tool"].as_str() {
            Some("panic") => panic!("as asked, by the call"),
            Some("drop") => {
                let _bad = PanicsOnDrop;
                tokio::task::yield_now().await;
                Outcome::Success(Reply::body(json!(null)))
            }
            Some("hang") => {
                let _bad = PanicsOnDrop;
                std::future::pending().await
            }
            Some("clock") => {
                self.clock.panic(2);
                Outcome::Success(Reply::body(json!(null)))
            }
            _ => self.tools.answer(&call).await,
        }
    }
}

async fn harness(clock: &BadClock) -> Harness {
    let change = |config: Config| {
        let tools = BadTools { tools: Tools::default(), clock: clock.clone() };
        Config {
            slots: 1,
            clock: Arc::new(clock.clone()),
            secrets: Arc::new(BadSecrets),
            kinds: Kinds::default().with("tool", tools),
            ..config
        }
    };
    let harness = Harness::with(change).await;
    for tool in ["ok", "panic", "drop", "hang", "clock"] {
        harness.define(&harness.admin, chain(tool, tool)).await;
    }
    let secret = json!({"name": "secret", "tasks": {"a": {"tool": "ok", "args": {"key": "{{secrets.BAD}}"}}}});
    harness.define(&harness.admin, secret).await;
    harness
}

async fn status(harness: &Harness, workflow: &str) -> (&'static str, Option<String>) {
    let run = harness.start(&harness.admin, workflow).await;
    let view = harness.ended(&run).await;
    (view.status, failure(&view))
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_in_an_attempt_fails_the_step_and_returns_its_slot() {
    let harness = harness(&BadClock::new()).await;
    for bad in ["panic", "drop", "secret"] {
        assert_eq!(status(&harness, bad).await, ("failed", Some("internal".into())), "{bad}");
        assert_eq!(status(&harness, "ok").await, ("completed", None), "after {bad}");
    }
    // The call panics when it is aborted.
    let run = harness.start(&harness.admin, "hang").await;
    while harness.view(&run).await.tasks[0].status != "running" {
        harness.pass(1).await;
    }
    harness.pass(1).await;
    harness.engine.runs(&harness.admin).cancel(&run, None).await.unwrap();
    assert_eq!(status(&harness, "ok").await, ("completed", None));
    harness.engine.shutdown(std::time::Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_panics_does_not_lose_the_messages_of_its_run() {
    let clock = BadClock::new();
    let harness = harness(&clock).await;
    let run = harness.start(&harness.admin, "clock").await;
    // The report of the call is handled although its driver panics twice, and the call is not made again.
    assert_eq!(harness.ended(&run).await.status, "completed");
    harness.pass(60).await;
    assert_eq!((clock.panics.load(Ordering::SeqCst), clock.told.load(Ordering::SeqCst)), (0, 1));
    assert!(harness.engine.gone_tasks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_background_task_that_panics_is_restarted_until_it_does_so_too_often() {
    let clock = BadClock::new();
    let harness = harness(&clock).await;
    let nap: Value = json!({"name": "nap", "tasks": {"a": {"sleep": "30s"}}});
    harness.define(&harness.admin, nap).await;
    // The loops that read the clock while nothing happens, for one the timers.
    clock.panic(5);
    harness.pass(10).await;
    assert_eq!(clock.panics.load(Ordering::SeqCst), 0, "the clock was read");
    assert!(harness.engine.gone_tasks().is_empty());
    assert_eq!(status(&harness, "nap").await, ("completed", None));
    clock.panic(u32::MAX);
    harness.pass(600).await;
    clock.panic(0);
    assert!(harness.engine.gone_tasks().contains(&"timers".into()), "{:?}", harness.engine.gone_tasks());
}
