//! States with transitions, as in the Amazon States Language: here a flow.

use super::words::{Names, slug};
use super::{Object, take, take_text};
use serde_json::{Value as Json, json};

/// The flow of a state machine. `None` if this is none.
pub fn convert(root: &mut Object) -> Option<Object> {
    let states = match root.get("States").or_else(|| root.get("states"))? {
        Json::Object(states) => states.clone(),
        _ => return None,
    };
    root.shift_remove("States");
    root.shift_remove("states");
    let start = take_text(root, &["StartAt", "startAt", "initial", "start_at", "start"]);
    let start = start.or_else(|| states.keys().next().cloned())?;
    for name in ["Version", "QueryLanguage", "version"] {
        root.shift_remove(name);
    }
    if let Some(about) = take_text(root, &["Comment", "comment"]) {
        root.insert("description".into(), about.into());
    }
    let mut machine = Machine { names: Names::default(), flow: Object::new(), start: start.clone() };
    machine.learn(&states);
    machine.add(&states, None);
    let mut flow = Object::new();
    if let Some(mut first) = machine.flow.shift_remove("start") {
        if let Some(fields) = first.as_object_mut() {
            let mut named = Object::from_iter([("name".to_string(), slug(&start).into())]);
            named.append(fields);
            *fields = named;
        }
        flow.insert("start".into(), first);
    }
    flow.extend(machine.flow);
    Some(flow)
}

struct Machine {
    names: Names,
    flow: Object,
    start: String,
}

impl Machine {
    fn learn(&mut self, states: &Object) {
        for (name, state) in states {
            self.names.add(name, &slug(name));
            for branch in state.get("Branches").and_then(Json::as_array).into_iter().flatten() {
                if let Some(Json::Object(inner)) = branch.get("States") {
                    self.learn(inner);
                }
            }
        }
    }

    fn key(&self, name: &str) -> String {
        if name == self.start { "start".into() } else { slug(name) }
    }

    /// Adds states; those that end do so at `join`, in a branch.
    fn add(&mut self, states: &Object, join: Option<&str>) {
        for (name, state) in states {
            let Some(state) = state.as_object() else { continue };
            let step = self.state(state.clone(), join);
            self.flow.insert(self.key(name), Json::Object(step));
        }
    }

    fn state(&mut self, mut state: Object, join: Option<&str>) -> Object {
        let kind = take_text(&mut state, &["Type", "type"]).unwrap_or_default().to_ascii_lowercase();
        let next = take_text(&mut state, &["Next", "next", "transition"]).map(|next| self.key(&next));
        let caught = take(&mut state, &["Catch", "catch"]);
        let mut out = match kind.as_str() {
            "choice" | "switch" => return self.choice(&state),
            "parallel" => self.parallel(&state, next.as_deref()),
            "wait" | "sleep" | "delay" => {
                let length = take(&mut state, &["Seconds", "seconds", "duration"]);
                match (length, take_text(&mut state, &["Timestamp"])) {
                    (None, Some(until)) => Object::from_iter([("until".to_string(), until.into())]),
                    (length, _) => Object::from_iter([("sleep".to_string(), length.unwrap_or(json!(60)))]),
                }
            }
            "map" | "foreach" => {
                let items =
                    take_text(&mut state, &["ItemsPath", "items", "inputCollection"]).unwrap_or_else(|| "input".into());
                let body = take(&mut state, &["Iterator", "ItemProcessor", "actions"]).unwrap_or_default();
                // Inside, the input of a state is the item.
                let body = self.plain(&body).to_string().replace("{{input", "{{item");
                let body = serde_json::from_str(&body).unwrap_or_default();
                let tasks = super::steps::nested(&body, self.names.inner());
                let items = if items.starts_with('$') {
                    self.names.text(&items)
                } else {
                    format!("{{{{{}}}}}", self.names.expr(&items))
                };
                Object::from_iter([("for_each".to_string(), items.into()), ("tasks".to_string(), Json::Object(tasks))])
            }
            "succeed" | "pass" | "fail" | "inject" | "end" | "final" => {
                let value = take(&mut state, &["Result", "Parameters", "Cause", "Error", "data"]).unwrap_or_default();
                let code =
                    if kind == "fail" { format!("throw new Error({value});") } else { format!("return {value};") };
                Object::from_iter([("javascript".to_string(), code.into())])
            }
            _ => self.task(state),
        };
        let parallel = out.contains_key("parallel");
        match (next, join) {
            _ if parallel => {}
            (Some(next), _) => drop(out.insert("next".into(), next.into())),
            (None, Some(_)) => {}
            (None, None) => drop(out.insert("done".into(), true.into())),
        }
        let to = caught.as_ref().and_then(|caught| caught.get(0).unwrap_or(caught).get("Next")?.as_str());
        if let Some(to) = to {
            out.insert("on_error".into(), self.key(to).into());
        }
        out
    }

    /// The body of a map, without its transitions.
    fn plain(&self, body: &Json) -> Json {
        let Some(states) = body.get("States").and_then(Json::as_object) else { return body.clone() };
        let step = |(name, state): (&String, &Json)| {
            let mut fields = self.task(state.as_object().cloned().unwrap_or_default());
            fields.shift_remove("End");
            let next = state.get("Next").cloned();
            fields.extend(next.map(|next| ("next".to_string(), next)));
            (name.clone(), Json::Object(fields))
        };
        Json::Object(states.iter().map(step).collect())
    }

    fn task(&self, mut state: Object) -> Object {
        let resource = take_text(&mut state, &["Resource", "resource"]).unwrap_or_default();
        for name in ["End", "end", "Type", "InputPath", "OutputPath", "ResultPath", "ResultSelector", "Comment", "Next"]
        {
            state.shift_remove(name);
        }
        let mut parameters = match take(&mut state, &["Parameters", "Arguments", "parameters", "arguments"]) {
            Some(Json::Object(parameters)) => parameters,
            _ => Object::new(),
        };
        if resource.contains("waitForTaskToken") {
            state.insert("wait_for_webhook".into(), true.into());
        } else if resource.contains("http:invoke") {
            parameters.shift_remove("Authentication");
            state.insert("type".into(), "http".into());
            state.extend(parameters);
        } else if !resource.is_empty() {
            let function = take_text(&mut parameters, &["FunctionName", "StateMachineArn"]);
            let name = function.unwrap_or_else(|| resource.trim_start_matches("arn:aws:states:::").to_owned());
            let name = if name.starts_with("arn:") { name.rsplit(':').next().unwrap_or_default() } else { &name };
            let payload =
                ["Payload", "Payload.$", "Input", "Input.$"].iter().find_map(|name| parameters.shift_remove(*name));
            let args = match payload {
                Some(Json::String(path)) => self.names.text(&path).into(),
                Some(payload) => payload,
                None => Json::Object(parameters),
            };
            state.insert("tool".into(), name.into());
            state.insert("args".into(), args);
        } else if !parameters.is_empty() {
            state.insert("parameters".into(), Json::Object(parameters));
        }
        match super::step::convert(&Json::Object(state), &self.names, true) {
            Json::Object(fields) => fields,
            _ => Object::new(),
        }
    }

    fn parallel(&mut self, state: &Object, join: Option<&str>) -> Object {
        let mut first = Vec::new();
        for branch in state.get("Branches").and_then(Json::as_array).into_iter().flatten() {
            let Some(states) = branch.get("States").and_then(Json::as_object).cloned() else { continue };
            let start =
                branch.get("StartAt").and_then(Json::as_str).or_else(|| states.keys().next().map(String::as_str));
            first.extend(start.map(slug));
            self.add(&states, Some(join.unwrap_or_default()));
        }
        let mut out = Object::from_iter([("parallel".to_string(), json!(first))]);
        out.extend(join.map(|join| ("join".to_string(), join.into())));
        out
    }

    fn choice(&self, state: &Object) -> Object {
        let mut branch = Vec::new();
        let choices = ["Choices", "choices", "dataConditions"].iter().find_map(|name| state.get(*name)?.as_array());
        for choice in choices.into_iter().flatten().filter_map(Json::as_object) {
            let to = ["Next", "next", "transition"].iter().find_map(|name| choice.get(*name)?.as_str());
            let Some(to) = to else { continue };
            branch.push(json!({"if": self.test(choice), "then": self.key(to)}));
        }
        let default = ["Default", "default", "defaultCondition"].iter().find_map(|name| state.get(*name)?.as_str());
        branch.extend(default.map(|to| json!({"then": self.key(to)})));
        Object::from_iter([
            ("javascript".to_string(), "return ctx.input;".into()),
            ("branch".to_string(), branch.into()),
        ])
    }

    fn test(&self, choice: &Object) -> String {
        for (name, sign) in [("And", " && "), ("Or", " || ")] {
            if let Some(parts) = choice.get(name).and_then(Json::as_array) {
                let parts = parts.iter().filter_map(Json::as_object).map(|part| format!("({})", self.test(part)));
                return parts.collect::<Vec<_>>().join(sign);
            }
        }
        if let Some(part) = choice.get("Not").and_then(Json::as_object) {
            return format!("!({})", self.test(part));
        }
        if let Some(test) = choice.get("Condition").or_else(|| choice.get("condition")).and_then(Json::as_str) {
            let test = test.trim().trim_start_matches("{%").trim_end_matches("%}");
            return self.names.condition(test).unwrap_or_else(|| "true".into());
        }
        let variable = choice.get("Variable").and_then(Json::as_str).unwrap_or("$");
        let path = self.names.expr(variable);
        let Some((name, value)) =
            choice.iter().find(|(name, _)| !["Variable", "Next", "Comment"].contains(&name.as_str()))
        else {
            return path;
        };
        let sign = match name.trim_end_matches("Path") {
            "IsPresent" | "IsNull" => {
                return format!(
                    "{path} {} null",
                    if (name == "IsNull") == (value == &json!(true)) { "==" } else { "!=" }
                );
            }
            name if name.ends_with("GreaterThanEquals") => ">=",
            name if name.ends_with("LessThanEquals") => "<=",
            name if name.ends_with("GreaterThan") => ">",
            name if name.ends_with("LessThan") => "<",
            _ => "==",
        };
        let value = match value {
            Json::String(text) if name.ends_with("Path") => self.names.expr(text),
            other => other.to_string(),
        };
        format!("{path} {sign} {value}")
    }
}
