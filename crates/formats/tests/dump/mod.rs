//! A definition as text, compact enough to read in a review.

use std::fmt::Write;
use stepwell_core::definition::Definition;
use stepwell_core::expr::StepIx;
use stepwell_core::graph::{
    Arm, Backoff, Graph, Handle, Join, Kind, OnFail, Retry, ScopeIx, Sleep, Step, Target, Test,
};
use stepwell_core::template::Template;

pub fn dump(definition: &Definition) -> String {
    let mut out = String::new();
    let graph = &definition.graph;
    let _ = writeln!(out, "{} ({:?}), triggers {:?}", definition.name, graph.dialect, definition.triggers);
    let _ = writeln!(out, "max_duration {}, retention {}", definition.max_duration, definition.retention);
    if !definition.enabled || definition.expose_as_tool {
        let _ = writeln!(out, "enabled {}, expose_as_tool {}", definition.enabled, definition.expose_as_tool);
    }
    if let Some(c) = &definition.concurrency {
        let _ = writeln!(out, "concurrency {} {:?} key {}", c.limit, c.when_full, c.key.is_some());
    }
    if !definition.allow_hosts.is_empty() || !definition.labels.is_empty() {
        let _ = writeln!(out, "hosts {:?}, labels {:?}", definition.allow_hosts, definition.labels);
    }
    if graph.output.is_some() {
        let _ = writeln!(out, "has an output");
    }
    for (name, value) in &graph.vars {
        let _ = writeln!(out, "var {name} = {}", shown(value));
    }
    scope(&mut out, graph, ScopeIx::ROOT, 0);
    out
}

fn shown(template: &Template) -> String {
    match template.as_constant() {
        Some(value) => value.to_string(),
        None => format!("{{{{{}}}}}", template.exprs().map(|e| e.source()).collect::<Vec<_>>().join("}} {{")),
    }
}

fn scope(out: &mut String, graph: &Graph, at: ScopeIx, depth: usize) {
    let indent = "  ".repeat(depth);
    let names = |steps: &[StepIx]| steps.iter().map(|&s| name(graph, s)).collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "{indent}starts: {}", names(&graph.scope(at).starts));
    for &step in &graph.scope(at).steps {
        let step = graph.step(step);
        let _ = writeln!(out, "{indent}{}: {}", step.def.name, about(step));
        for edge in &step.outs {
            let to = match edge.to {
                Target::Step(to) => name(graph, to),
                Target::Back => "(back)".into(),
                Target::Leave(n) => format!("(leaves by {n})"),
            };
            let _ = writeln!(out, "{indent}  {} -> {to}", handle(step, edge.handle));
        }
        if let Some(body) = step.def.kind.body() {
            scope(out, graph, body, depth + 2);
        }
    }
}

fn name(graph: &Graph, step: StepIx) -> String {
    graph.step(step).def.name.to_string()
}

fn handle(step: &Step, handle: Handle) -> String {
    match handle {
        Handle::SUCCESS => "success".into(),
        Handle::ERROR => "error".into(),
        Handle::DENIED => "denied".into(),
        Handle(n) => format!("'{}'", step.def.handles[(n - Handle::FIRST_NAMED) as usize]),
    }
}

fn about(step: &Step) -> String {
    let def = &step.def;
    let mut text = kind(step);
    let join = match def.join {
        Join::Every => "every",
        Join::Some => "some",
        Join::Any => "any",
        Join::Settled => "settled",
    };
    let _ = write!(text, " | {join}, in {}", step.in_edges);
    if def.on_fail == OnFail::Abort {
        text.push_str(", abort");
    }
    if let Some(condition) = &def.condition {
        let _ = write!(text, ", if {}", condition.source());
    }
    if def.retry != Retry::NEVER {
        let _ = write!(text, ", {}", retry(&def.retry));
    }
    if let Some(timeout) = def.timeout {
        let _ = write!(text, ", timeout {timeout}");
    }
    if let Some(unknown) = def.at_most_once {
        let _ = write!(text, ", once {unknown:?}");
    }
    if let Some(variable) = &def.output_variable {
        let _ = write!(text, ", to ctx.{variable}");
    }
    if !def.branches.is_empty() {
        let _ = write!(text, ", branch {}", arms(step, &def.branches));
    }
    if def.done {
        text.push_str(", done");
    }
    text
}

fn kind(step: &Step) -> String {
    match &step.def.kind {
        Kind::Call { call, input } => format!("{} {}", call.name(), shown(input)),
        Kind::Pass { output: Some(output) } => format!("pass {}", shown(output)),
        Kind::Pass { output: None } => "pass".into(),
        Kind::Condition { arms: list } => format!("condition {}", arms(step, list)),
        Kind::End { outputs } => {
            format!("end {}", outputs.iter().map(|(n, t)| format!("{n}={}", shown(t))).collect::<Vec<_>>().join(", "))
        }
        Kind::Sleep(Sleep::For(length)) => format!("sleep {length}"),
        Kind::Sleep(Sleep::ForValue(t)) => format!("sleep {}", shown(t)),
        Kind::Sleep(Sleep::Until(t)) => format!("sleep until {}", shown(t)),
        Kind::Webhook { timeout } => format!("webhook timeout {timeout:?}"),
        Kind::Gate(gate) => format!(
            "gate {} timeout {:?} {:?} escalate {:?} approvals {}",
            shown(&gate.ask),
            gate.timeout,
            gate.on_timeout,
            gate.escalate_after,
            gate.approvals
        ),
        Kind::Child { workflow, input } => format!("workflow {workflow} {}", shown(input)),
        Kind::Each(each) => format!(
            "each {} parallel {} {:?} limit {} item {:?} index {:?}{}",
            shown(&each.items),
            each.max_parallel,
            each.on_item_error,
            each.limit,
            each.item_variable,
            each.index_variable,
            if each.output.is_some() { " output" } else { "" }
        ),
        Kind::Loop { limit, .. } => format!("loop limit {limit}"),
    }
}

fn arms(step: &Step, arms: &[Arm]) -> String {
    let arm = |arm: &Arm| {
        let test = match &arm.test {
            Test::Always => "else".into(),
            Test::Expr(expr) => expr.source().to_owned(),
            Test::Rules { all, rules } => {
                let rules: Vec<&str> = rules.iter().map(|rule| rule.operator.name()).collect();
                rules.join(if *all { " AND " } else { " OR " })
            }
        };
        format!("{} if ({test})", handle(step, arm.handle))
    };
    arms.iter().map(arm).collect::<Vec<_>>().join(", ")
}

fn retry(retry: &Retry) -> String {
    let pauses = match &retry.backoff {
        Backoff::Exponential { first, cap } => format!("{first}..{cap}"),
        Backoff::Fixed(pause) => format!("{pause}"),
        Backoff::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join("+"),
    };
    let jitter = if retry.jitter { " jitter" } else { "" };
    let on = if retry.on.is_empty() { String::new() } else { format!(" on {:?}", retry.on) };
    format!("{}x after {pauses}{jitter}{on}", retry.attempts)
}
