//! Runs with many payloads: what is shown of them, and that they go on.

use crate::harness::Harness;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use stepwell_engine::Error;
use stepwell_engine::commands::{StepPage, StepQuery, StepView};

const TEXT: usize = 300_000;
/// The most that the payloads of steps in one view come to.
const MOST: usize = 4 << 20;
const ITEMS: usize = 12;

/// Each item's input and output have the text.
const COPIES: &str = r#"{"name": "copies", "tasks": {"each": {"for_each": "{{input.items}}",
    "tasks": {"one": {"tool": "copy", "args": {"text": "{{input.text}}"}}}},
    "last": {"needs": "each", "tool": "add", "args": {"n": 1}}}}"#;

fn input() -> Value {
    json!({"items": (0..ITEMS).collect::<Vec<_>>(), "text": "x".repeat(TEXT)})
}

/// The bytes of the payloads of steps.
fn bytes(steps: &[StepView]) -> usize {
    let size = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
    steps.iter().map(|step| size(&step.input) + size(&step.output)).sum()
}

impl Harness {
    async fn page(&self, run: &str, query: StepQuery) -> Result<StepPage, Error> {
        self.engine.runs(&self.admin).steps(run, &query).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_run_is_shown_with_the_payloads_that_fit_and_its_steps_in_pages() {
    let harness = Harness::new().await;
    harness.define(COPIES).await;
    let view = harness.run("copies", input()).await;
    assert_eq!((view.status, view.tasks.len()), ("completed", ITEMS + 2));
    assert_eq!(view.input["text"].as_str().unwrap().len(), TEXT, "the run's own input is there in any case");
    assert!(bytes(&view.tasks) <= MOST, "{} bytes", bytes(&view.tasks));
    let omitted: BTreeSet<&str> =
        view.tasks.iter().filter(|step| step.omitted).map(|step| step.path.as_str()).collect();
    assert!(omitted.contains("each[11].one") && !omitted.contains("last"), "{omitted:?}");
    for step in &view.tasks {
        assert_eq!(step.status, "success");
        assert_eq!(step.output.is_none(), step.omitted, "{}", step.path);
    }
    // All of it, page by page.
    let mut query = StepQuery { limit: 100, ..StepQuery::default() };
    let (mut paths, mut pages) = (Vec::new(), 0);
    loop {
        let page = harness.page(&view.id, query.clone()).await.unwrap();
        assert!(bytes(&page.steps) <= MOST || page.steps.len() == 1);
        assert!(page.steps.iter().all(|step| !step.omitted && step.output.is_some()));
        paths.extend(page.steps.into_iter().map(|step| step.path));
        pages += 1;
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert!(pages >= 3, "{pages} pages");
    assert_eq!(paths, view.tasks.iter().map(|step| step.path.clone()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_are_found_by_path_prefix_and_status() {
    let harness = Harness::new().await;
    harness.define(COPIES).await;
    let view = harness.run("copies", input()).await;
    let query = |limit| StepQuery { limit, ..StepQuery::default() };
    let paths = |page: StepPage| page.steps.into_iter().map(|step| step.path).collect::<Vec<_>>();
    let one = StepQuery { path: Some("each[1].one".into()), ..query(1) };
    assert_eq!(paths(harness.page(&view.id, one).await.unwrap()), ["each[1].one"]);
    let of_item = StepQuery { prefix: Some("each[1".into()), ..query(2) };
    let page = harness.page(&view.id, of_item.clone()).await.unwrap();
    assert_eq!(
        (page.next.as_deref(), paths(page.clone())),
        (Some("each[10].one"), vec!["each[1].one".into(), "each[10].one".into()])
    );
    let rest = harness.page(&view.id, StepQuery { after: page.next, ..of_item }).await.unwrap();
    assert_eq!((rest.next.clone(), paths(rest)), (None, vec!["each[11].one".to_string()]));
    let failed = StepQuery { status: vec!["failed".into()], ..query(9) };
    assert_eq!(paths(harness.page(&view.id, failed).await.unwrap()), Vec::<String>::new());
    let unknown = harness.page(&view.id, StepQuery { after: Some("never".into()), ..query(9) }).await;
    assert!(matches!(&unknown, Err(Error::Input { path, .. }) if path == "cursor"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_run_goes_on_after_a_crash_and_when_its_time_comes() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "waits", "tasks": {"rest": {"sleep": "1s"}, "held": {"tool": "hold", "args": {}},
            "last": {"needs": ["rest", "held"], "tool": "copy", "args": {"text": "{{input.text}}"}}}}"#,
        )
        .await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        // More than is read at once, for each run and for all that are due together.
        runs.push(harness.start("waits", json!({"text": "x".repeat(3 << 20)})).await);
    }
    harness.tools.until_holding(4).await;
    let harness = harness.restarted_after_a_crash().await;
    harness.tools.permits.add_permits(8);
    for run in runs {
        let view = harness.ended(&run).await;
        assert_eq!((view.status, view.tasks[1].attempt), ("completed", 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_run_is_read_in_pages_of_limited_size() {
    let harness = Harness::new().await;
    harness
        .define(
            r#"{"name": "wide", "tasks": {"each": {"for_each": "{{input.items}}", "max_parallel": 10000,
            "tasks": {"one": {"sleep": 0}}}}}"#,
        )
        .await;
    let view = harness.run("wide", json!({"items": (0..10_000).collect::<Vec<_>>()})).await;
    assert_eq!(view.status, "completed");
    let (mut after, mut pages, mut commits) = (0, 0, 0);
    loop {
        let page = harness.engine.runs(&harness.admin).events(&view.id, after, 1_000).await.unwrap();
        let bytes: usize = page.events.iter().map(|event| event.fact.to_string().len()).sum();
        let versions: BTreeSet<i64> = page.events.iter().map(|event| event.version).collect();
        assert!(bytes < 3 << 20 || versions.len() == 1, "{bytes} bytes in {} commits", versions.len());
        assert!(page.events.iter().all(|event| event.version > after));
        (pages, commits) = (pages + 1, commits + versions.len() as i64);
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert!(pages > 1, "the log has {commits} commits in one page");
    assert_eq!(commits, view.version);
}
