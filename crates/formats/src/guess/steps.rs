//! Steps from lists, jobs, stages and nodes, and what each waits for.

use super::words::{Names, slug, steps_read};
use super::{Object, names_in, step, take, take_text};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};

/// A step as its author wrote it.
pub struct Written {
    /// The names that others may use for it.
    pub names: Vec<String>,
    pub body: Json,
    /// What it waits for, beside what its own fields say.
    pub after: Vec<String>,
    pub condition: Option<String>,
}

impl Written {
    pub fn new(name: &str, body: Json) -> Written {
        Written { names: vec![name.to_owned()], body, after: Vec::new(), condition: None }
    }
}

const NEEDS: [&str; 15] = [
    "needs",
    "depends_on",
    "dependsOn",
    "depends-on",
    "depends",
    "dependencies",
    "after",
    "requires",
    "require",
    "runAfter",
    "run_after",
    "upstream",
    "waitFor",
    "wait_for",
    "parents",
];
const THEN: [&str; 8] = ["next", "then", "on_success", "onSuccess", "transition", "next_step", "nextStep", "goto"];
const CATCH: [&str; 6] = ["on_failure", "onFailure", "on_error", "onError", "catch", "error_handler"];
const NAMES: [&str; 8] = ["id", "key", "step_id", "task_id", "name", "step", "label", "title"];

/// The steps of a list, a map, or something that contains them.
pub fn collect(value: &Json) -> Vec<Written> {
    match value {
        Json::Array(items) => in_order(items),
        Json::Object(map) => map.iter().map(|(name, body)| named(name, body)).collect(),
        _ => Vec::new(),
    }
}

fn named(name: &str, body: &Json) -> Written {
    let mut written = Written::new(name, body.clone());
    written.names.extend(["id", "name"].iter().filter_map(|field| body.get(*field)?.as_str().map(str::to_owned)));
    written
}

/// A list runs in its order, unless its steps say what they wait for.
fn in_order(items: &[Json]) -> Vec<Written> {
    let mut found: Vec<Written> = Vec::new();
    let says =
        |item: &Json| NEEDS.iter().chain(&THEN).chain(&["branch"]).any(|name| body_of(item).get(*name).is_some());
    let ordered = !items.iter().any(says);
    let mut last: Vec<String> = Vec::new();
    for (n, item) in items.iter().enumerate() {
        if let Some(branches) = parallel(item) {
            let mut ends = Vec::new();
            for branch in &branches {
                let mut steps = in_order(std::slice::from_ref(branch));
                if let Json::Array(items) = branch {
                    steps = in_order(items);
                }
                for (at, step) in steps.iter_mut().enumerate() {
                    if step.names.is_empty() {
                        step.names.push(format!("step-{}-{}", n + 1, ends.len() + at + 1));
                    }
                    if step.after.is_empty() {
                        step.after.clone_from(&last);
                    }
                }
                ends.extend(steps.last().and_then(|step| step.names.first().cloned()));
                found.extend(steps);
            }
            last = ends;
            continue;
        }
        let mut written = one(item, n);
        if ordered {
            written.after.clone_from(&last);
        }
        last = vec![written.names[0].clone()];
        found.push(written);
    }
    found
}

fn body_of(item: &Json) -> &Json {
    match item {
        Json::Object(fields) if fields.len() == 1 => match fields.values().next() {
            Some(inner @ Json::Object(_))
                if !fields.keys().any(|name| crate::kinds::STEP_FIELDS.contains(&name.as_str())) =>
            {
                inner
            }
            _ => item,
        },
        _ => item,
    }
}

/// The steps that run at the same time.
fn parallel(item: &Json) -> Option<Vec<Json>> {
    let value = item.get("parallel").or_else(|| item.get("concurrent"));
    let value = value.or_else(|| {
        let kind = item.get("type")?.as_str()?;
        (kind == "parallel").then(|| ["branches", "steps", "tasks"].iter().find_map(|name| item.get(*name)))?
    })?;
    match value {
        Json::Array(items) if items.iter().any(|item| !item.is_string()) => Some(items.clone()),
        Json::Object(inner) => {
            match ["branches", "steps", "tasks"].iter().find_map(|name| inner.get(*name)?.as_array()) {
                Some(items) => Some(items.clone()),
                None => Some(inner.iter().map(|(name, body)| json!({name.as_str(): body})).collect()),
            }
        }
        _ => None,
    }
}

fn one(item: &Json, n: usize) -> Written {
    let body = body_of(item);
    if !std::ptr::eq(body, item) {
        let name = item.as_object().and_then(|fields| fields.keys().next().cloned()).unwrap_or_default();
        return named(&name, body);
    }
    let mut names: Vec<String> = NAMES.iter().filter_map(|name| item.get(*name)?.as_str().map(str::to_owned)).collect();
    names.retain(|name| !slug(name).is_empty());
    if names.is_empty() {
        let called = ["tool", "call", "action", "function", "run"].iter().find_map(|name| item.get(*name)?.as_str());
        let called = called.filter(|name| name.len() < 40 && !name.contains([' ', '/', '.']));
        names.push(called.map_or_else(|| format!("step-{}", n + 1), str::to_owned));
    }
    Written { names, ..Written::new("", item.clone()) }
}

/// The tasks that these steps are here.
pub fn tasks(mut written: Vec<Written>, names: &mut Names) -> Object {
    let mut taken = BTreeSet::new();
    let mut here: Vec<String> = Vec::new();
    for step in &written {
        let wanted = slug(step.names.first().map_or("step", String::as_str));
        let wanted = if wanted.is_empty() { "step".to_owned() } else { wanted };
        let name = (1..)
            .map(|n| if n == 1 { wanted.clone() } else { format!("{wanted}-{n}") })
            .find(|name| !taken.contains(name));
        let name = name.unwrap_or_default();
        taken.insert(name.clone());
        for other in &step.names {
            names.add(other, &name);
            names.add(&slug(other), &name);
        }
        here.push(name);
    }
    transitions(&mut written, &here, names);
    let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut made = Object::new();
    for (mut step, name) in written.into_iter().zip(&here) {
        let own = step.body.as_object_mut().and_then(|fields| take(fields, &NEEDS));
        let own = own.map(|value| names_in(&value)).unwrap_or_default();
        let mut waits: Vec<String> = Vec::new();
        for other in own.iter().chain(&step.after) {
            let near = || stepwell_core::nearest::nearest(other, here.iter().map(String::as_str));
            let found = names.find(other).or_else(near).unwrap_or(other).to_owned();
            if found != *name && !waits.contains(&found) {
                waits.push(found);
            }
        }
        needs.insert(name.clone(), waits);
        let mut body = step::convert(&step.body, names, false);
        if let (Some(fields), Some(condition)) = (body.as_object_mut(), step.condition) {
            fields.entry("if").or_insert(condition.into());
        }
        made.insert(name.clone(), body);
    }
    failures(&mut made, &needs);
    add_needs(&mut made, needs);
    made
}

/// `failure()` is about what the step waits for.
fn failures(made: &mut Object, needs: &BTreeMap<String, Vec<String>>) {
    for (name, body) in made {
        let Some(fields) = body.as_object_mut() else { continue };
        let failed = fields.get("if").and_then(Json::as_str).is_some_and(|text| text.contains("failure()"));
        if failed {
            let tests: Vec<String> =
                needs[name].iter().map(|need| format!("tasks.{need}.status != 'success'")).collect();
            fields.insert("if".into(), if tests.is_empty() { "false".into() } else { tests.join(" || ").into() });
        }
    }
}

/// `next`, `on_failure` and the like, as needs of the steps that they lead to.
fn transitions(written: &mut [Written], here: &[String], names: &Names) {
    let mut links: Vec<(usize, String, Option<String>)> = Vec::new();
    for (at, step) in written.iter_mut().enumerate() {
        let Some(fields) = step.body.as_object_mut() else { continue };
        let from = &here[at];
        fields.shift_remove("done");
        fields.shift_remove("end");
        if let Some(chosen) = chosen(fields, names) {
            links.extend(chosen.into_iter().map(|(to, test)| (at, to, Some(test))));
        }
        if let Some(then) = take(fields, &THEN) {
            links.extend(names_in(&then).into_iter().map(|to| (at, to, None)));
        }
        if let Some(to) = CATCH.iter().find_map(|name| take_text(fields, &[name])).filter(|to| names.find(to).is_some())
        {
            links.push((at, to, Some(format!("tasks.{from}.status != 'success'"))));
        }
        for name in CATCH {
            fields.shift_remove(name);
        }
        let Some(Json::Array(entries)) = fields.get("branch").cloned() else { continue };
        fields.shift_remove("branch");
        for entry in entries {
            let to = ["then", "next", "else", "goto", "to"].iter().find_map(|name| entry.get(*name)?.as_str());
            let test = ["if", "when", "condition"].iter().find_map(|name| entry.get(*name)?.as_str());
            let test = test.and_then(|test| names.condition(test)).map(|test| own_result(&test, from));
            links.extend(to.map(|to| (at, to.to_owned(), test)));
        }
    }
    for (from, to, condition) in links {
        let Some(to) = names.find(&to) else { continue };
        let Some(at) = here.iter().position(|name| name == to) else { continue };
        // An edge that leads back would be a cycle.
        if from < at || condition.is_none() && from != at && written[from].after.is_empty() {
            written[at].after.push(here[from].clone());
            written[at].condition = written[at].condition.take().or(condition);
        }
    }
}

/// `condition: test, then: step, else: step`: a step that only chooses, and the steps that it leads to.
fn chosen(fields: &mut Object, names: &Names) -> Option<Vec<(String, String)>> {
    let then =
        ["then", "on_true", "if_true", "true"].iter().find(|name| fields.get(**name).is_some_and(Json::is_string))?;
    let test = ["condition", "if", "expression", "when"].iter().find_map(|name| fields.get(*name)?.as_str())?;
    let test = names.condition(test)?;
    let then = take_text(fields, &[then])?;
    let other = take_text(fields, &["else", "on_false", "if_false", "false"]);
    let mut found = vec![(then, test.clone())];
    found.extend(other.map(|other| (other, format!("!({test})"))));
    ["condition", "if", "expression", "when", "type"].iter().for_each(|name| drop(fields.shift_remove(*name)));
    let entries = [json!({"id": "true", "if": test}), json!({"id": "false"})];
    fields.insert("condition".into(), json!(entries));
    Some(found)
}

fn own_result(test: &str, step: &str) -> String {
    match test.strip_prefix("result") {
        Some(rest) => format!("tasks.{step}.body{rest}"),
        None => test.to_owned(),
    }
}

/// Writes the needs, with the steps whose results a step reads.
fn add_needs(made: &mut Object, mut needs: BTreeMap<String, Vec<String>>) {
    let known: Vec<String> = made.keys().cloned().collect();
    for name in &known {
        let mut read = Vec::new();
        steps_read(&made[name], &mut read);
        for other in read.into_iter().filter(|other| other != name && known.contains(other)) {
            if !reaches(&needs, name, &other) && !reaches(&needs, &other, name) {
                needs.entry(name.clone()).or_default().push(other);
            }
        }
    }
    for (name, body) in made {
        let Some(fields) = body.as_object_mut() else { continue };
        let waits = needs.remove(name).unwrap_or_default();
        fields.shift_remove("needs");
        if !waits.is_empty() {
            let mut with = Object::from_iter([("needs".to_string(), json!(waits))]);
            with.append(fields);
            *fields = with;
        }
    }
}

/// Whether a step waits for another, directly or not.
fn reaches(needs: &BTreeMap<String, Vec<String>>, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(name) = open.pop() {
        for need in needs.get(name).into_iter().flatten() {
            if need == to {
                return true;
            }
            if seen.insert(need.as_str()) {
                open.push(need);
            }
        }
    }
    false
}

/// The body of a `for_each`.
pub fn nested(body: &Json, mut names: Names) -> Object {
    let wrapped = match body {
        Json::Object(fields) if super::kind::is_step(fields) => json!([body]),
        Json::Object(fields) => {
            ["tasks", "steps", "States"].iter().find_map(|name| fields.get(*name)).unwrap_or(body).clone()
        }
        other => other.clone(),
    };
    tasks(collect(&wrapped), &mut names)
}
