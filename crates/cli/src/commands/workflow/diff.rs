//! `stepwell workflow diff`: two versions of a workflow compared as text and as graphs.

use crate::backend::{Missing, with};
use crate::commands::{Common, Exit, document};
use crate::draw::plain;
use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use stepwell_core::diff::unified;
use stepwell_core::outline::{EdgeStyle, Outline, outline};
use stepwell_server::view::VersionView;

#[derive(clap::Args)]
pub struct Args {
    /// Workflow, by name or `wf_…`
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Older version (default: the one before TO)
    #[arg(value_name = "FROM")]
    from: Option<u32>,
    /// Newer version (default: the newest)
    #[arg(value_name = "TO")]
    to: Option<u32>,
    #[command(flatten)]
    common: Common,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let Args { workflow, from, to, common } = args;
    with(&common.at, Missing::Refuse, async |backend| {
        let versions = backend.versions(&workflow).await?;
        let newest = versions.iter().map(|version| version.version).max().context("the workflow has no version")?;
        let to = to.unwrap_or(newest);
        let Some(from) = from.or_else(|| to.checked_sub(1).filter(|from| *from > 0)) else {
            bail!("{workflow} has one version only: there is nothing to compare it with");
        };
        let find = |number: u32| {
            let found = versions.iter().find(|version| version.version == number);
            found.with_context(|| format!("{workflow} has no version {number}; the newest is {newest}"))
        };
        let (from, to) = (find(from)?, find(to)?);
        let graph = graphs(from, to);
        if common.json {
            let text = unified(&from.source, &to.source);
            document(&json!({"workflow": workflow, "from": from.version, "to": to.version, "text": text,
                             "graph": graph}))?;
            return Ok(Exit::Success);
        }
        write!(std::io::stdout().lock(), "{}", plain(&page(from, to, graph.as_ref())))?;
        Ok(Exit::Success)
    })
}

/// How the graphs differ. Steps are named by their paths; edges read `a → b [label]`.
#[derive(Serialize, PartialEq, Debug, Default)]
struct Changes {
    steps_added: Vec<String>,
    steps_removed: Vec<String>,
    /// Steps of another kind, or that do something else as far as a drawing shows it.
    steps_changed: Vec<String>,
    edges_added: Vec<String>,
    edges_removed: Vec<String>,
}

/// `None` if this program cannot read one of the versions.
fn graphs(from: &VersionView, to: &VersionView) -> Option<Changes> {
    let read = |version: &VersionView| stepwell_formats::read(version.source.as_bytes(), None).ok();
    Some(changes(&outline(&read(from)?), &outline(&read(to)?)))
}

fn changes(from: &Outline, to: &Outline) -> Changes {
    let (old, new) = (steps(from), steps(to));
    let (before, after) = (edges(from), edges(to));
    let only = |these: &BTreeMap<String, String>, those: &BTreeMap<String, String>| {
        let names = these.iter().filter(|(path, _)| !those.contains_key(*path));
        names.map(|(path, what)| format!("{path} ({what})")).collect()
    };
    let changed = old.iter().filter_map(|(path, was)| {
        let is = new.get(path).filter(|is| *is != was)?;
        Some(format!("{path} ({was} → {is})"))
    });
    Changes {
        steps_added: only(&new, &old),
        steps_removed: only(&old, &new),
        steps_changed: changed.collect(),
        edges_added: after.difference(&before).cloned().collect(),
        edges_removed: before.difference(&after).cloned().collect(),
    }
}

fn steps(outline: &Outline) -> BTreeMap<String, String> {
    let what = |node: &stepwell_core::outline::Node| match node.detail.as_str() {
        "" => node.kind.clone(),
        detail => format!("{} {detail}", node.kind),
    };
    outline.nodes.iter().map(|node| (node.path.replace("loop:", ""), what(node))).collect()
}

fn edges(outline: &Outline) -> BTreeSet<String> {
    let path = |index: usize| outline.nodes.get(index).map(|node| node.path.replace("loop:", "")).unwrap_or_default();
    let edge = |edge: &stepwell_core::outline::Edge| {
        let label = if edge.label.is_empty() { String::new() } else { format!(" [{}]", edge.label) };
        let back = if edge.style == EdgeStyle::Back { " (back)" } else { "" };
        format!("{} → {}{label}{back}", path(edge.from), path(edge.to))
    };
    outline.edges.iter().map(edge).collect()
}

fn page(from: &VersionView, to: &VersionView, graph: Option<&Changes>) -> String {
    let text = unified(&from.source, &to.source);
    if text.is_empty() {
        return format!("versions {} and {} are the same\n", from.version, to.version);
    }
    let mut page = format!("--- version {}\n+++ version {}\n{text}\n", from.version, to.version);
    let Some(changes) = graph else {
        page.push_str("the graphs cannot be compared: this program cannot read one of the versions\n");
        return page;
    };
    let Changes { steps_added, steps_removed, steps_changed, edges_added, edges_removed } = changes;
    let marked = [
        ("- step", steps_removed),
        ("+ step", steps_added),
        ("~ step", steps_changed),
        ("- edge", edges_removed),
        ("+ edge", edges_added),
    ];
    for (mark, lines) in marked {
        lines.iter().for_each(|line| {
            let _ = writeln!(page, "{mark} {line}");
        });
    }
    if *changes == Changes::default() {
        page.push_str("the graph is the same\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_edges_that_differ_are_listed() {
        let read = |text: &str| outline(&stepwell_formats::read(text.as_bytes(), None).unwrap());
        let old = read("name: a\ntasks:\n  x: {sleep: 1s}\n  y: {needs: x, sleep: 1s}\n  z: {needs: y, sleep: 1s}\n");
        let new = read("name: a\ntasks:\n  x: {sleep: 2s}\n  w: {needs: x, sleep: 1s}\n  z: {needs: w, sleep: 1s}\n");
        let found = changes(&old, &new);
        assert_eq!(found.steps_added, ["w (sleep 1s)"]);
        assert_eq!(found.steps_removed, ["y (sleep 1s)"]);
        assert_eq!(found.steps_changed, ["x (sleep 1s → sleep 2s)"]);
        assert_eq!(found.edges_added, ["w → z", "x → w"]);
        assert_eq!(found.edges_removed, ["x → y", "y → z"]);
        assert_eq!(changes(&old, &old), Changes::default());
    }
}
