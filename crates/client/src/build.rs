//! Definitions in code: steps as values, references to their results as templates.
//!
//! ```
//! use serde_json::json;
//! use stepwell_client::build::{Step, Workflow, input};
//!
//! let mut order = Workflow::new("order");
//! let body = json!({"order": input().at("order_id")});
//! let charge = order.add(Step::http("charge", "https://pay.example/charges").field("body", body).field("retries", 3));
//! let message = format!("Ship {}?", charge.at("body.id"));
//! let ask = order.add(Step::approval("ask", json!({"message": message, "timeout": "2d"})));
//! order.add(Step::tool("ship", "ship_order", json!({"payment": charge.at("body.id")})).needs(&ask));
//! let text = json!({"text": charge.at("error.message")});
//! order.add(Step::tool("apologise", "send_mail", text).when(charge.at("status").ne("success")));
//! order.output(json!({"payment": charge.at("body.id")}));
//! println!("{}", order.to_yaml()?);
//! # Ok::<(), stepwell_client::Error>(())
//! ```
//!
//! A step needs what it reads: `needs` is for steps whose results it does not read.

mod read;
mod yaml;

use crate::Error;
use read::{reads, reads_expression};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::fmt;

/// A value that is known when the workflow runs. In texts and in JSON it is a template: `{{tasks.charge.body.id}}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ref(String);

impl Ref {
    /// A part of it, by a path such as `body.items[0].id`.
    pub fn at(&self, path: &str) -> Ref {
        Ref(format!("{}.{path}", self.0))
    }

    /// A part of it, by a key of any characters.
    pub fn key(&self, key: &str) -> Ref {
        Ref(format!("{}[{}]", self.0, Value::from(key)))
    }

    /// The value, or another one if it is missing or null.
    pub fn or(&self, value: impl Into<Operand>) -> Ref {
        Ref(format!("{} ?? {}", self.0, value.into().0))
    }

    /// Whether it equals another value.
    pub fn eq(&self, other: impl Into<Operand>) -> Condition {
        self.compare("==", other)
    }

    /// Whether it differs from another value.
    pub fn ne(&self, other: impl Into<Operand>) -> Condition {
        self.compare("!=", other)
    }

    /// Whether it is less than another value.
    pub fn lt(&self, other: impl Into<Operand>) -> Condition {
        self.compare("<", other)
    }

    /// Whether it is at most another value.
    pub fn le(&self, other: impl Into<Operand>) -> Condition {
        self.compare("<=", other)
    }

    /// Whether it is greater than another value.
    pub fn gt(&self, other: impl Into<Operand>) -> Condition {
        self.compare(">", other)
    }

    /// Whether it is at least another value.
    pub fn ge(&self, other: impl Into<Operand>) -> Condition {
        self.compare(">=", other)
    }

    fn compare(&self, operator: &str, other: impl Into<Operand>) -> Condition {
        Condition(format!("{} {operator} {}", Operand::from(self).0, other.into().0))
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}}}}}", self.0)
    }
}

impl Serialize for Ref {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The input of the run.
pub fn input() -> Ref {
    Ref("input".into())
}

/// What started the run.
pub fn trigger() -> Ref {
    Ref("trigger".into())
}

/// In the body of a [`Step::for_each`]: the item.
pub fn item() -> Ref {
    Ref("item".into())
}

/// In the body of a [`Step::for_each`]: the position of the item.
pub fn index() -> Ref {
    Ref("index".into())
}

/// One side of a comparison: a reference, or a value that JSON can write.
pub struct Operand(String);

impl From<&Ref> for Operand {
    fn from(reference: &Ref) -> Operand {
        Operand(if reference.0.contains("??") { format!("({})", reference.0) } else { reference.0.clone() })
    }
}

impl From<Ref> for Operand {
    fn from(reference: Ref) -> Operand {
        Operand::from(&reference)
    }
}

impl<T: Into<Value>> From<T> for Operand {
    fn from(value: T) -> Operand {
        Operand(value.into().to_string())
    }
}

/// An expression that is true or false.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition(String);

impl Condition {
    /// An expression, as in `if` of a definition.
    pub fn new(expression: impl Into<String>) -> Condition {
        Condition(expression.into())
    }

    /// Both.
    pub fn and(&self, other: &Condition) -> Condition {
        Condition(format!("({}) && ({})", self.0, other.0))
    }

    /// At least one.
    pub fn or(&self, other: &Condition) -> Condition {
        Condition(format!("({}) || ({})", self.0, other.0))
    }

    /// The opposite.
    pub fn not(&self) -> Condition {
        Condition(format!("!({})", self.0))
    }
}

/// A step that is not yet in a workflow.
#[derive(Clone, Debug)]
pub struct Step {
    name: String,
    needs: Vec<String>,
    fields: Map<String, Value>,
    body: Option<Steps>,
}

impl Step {
    /// A step of any kind, by its fields.
    pub fn new(name: &str) -> Step {
        Step { name: name.to_string(), needs: Vec::new(), fields: Map::new(), body: None }
    }

    /// An HTTP request. Without a method it is a GET, or a POST if it has a body.
    pub fn http(name: &str, url: impl fmt::Display) -> Step {
        Step::new(name).field("url", url.to_string())
    }

    /// A call of a tool.
    pub fn tool(name: &str, tool: &str, args: Value) -> Step {
        Step::new(name).field("tool", tool).field("args", args)
    }

    /// JavaScript.
    pub fn javascript(name: &str, code: &str) -> Step {
        Step::new(name).field("javascript", code)
    }

    /// A statement on a named database: `{connection, sql, params}` or `{saved, params}`.
    pub fn query(name: &str, query: Value) -> Step {
        Step::new(name).field("query", query)
    }

    /// A pause, such as `10m`.
    pub fn sleep(name: &str, length: impl fmt::Display) -> Step {
        Step::new(name).field("sleep", length.to_string())
    }

    /// Waits for a call of its address, `{{wait.NAME.url}}`.
    pub fn wait_for_webhook(name: &str) -> Step {
        Step::new(name).field("wait_for_webhook", true)
    }

    /// A gate that waits for people: `{message, approvers, timeout, form, …}`.
    pub fn approval(name: &str, approval: Value) -> Step {
        Step::new(name).field("approval", approval)
    }

    /// Another workflow, to its end.
    pub fn workflow(name: &str, workflow: &str, input: Value) -> Step {
        Step::new(name).field("workflow", workflow).field("input", input)
    }

    /// Runs steps for each item of a list.
    pub fn for_each(name: &str, items: impl Serialize, body: Steps) -> Step {
        Step { body: Some(body), ..Step::new(name).field("for_each", items) }
    }

    /// A field of its kind.
    pub fn field(mut self, name: &str, value: impl Serialize) -> Step {
        self.fields.insert(name.to_string(), json!(value));
        self
    }

    /// Runs after this step, whose result it does not read.
    pub fn needs(mut self, step: &Ref) -> Step {
        self.needs.extend(reads_expression(&step.0));
        self
    }

    /// Runs only if this holds.
    pub fn when(self, condition: Condition) -> Step {
        self.field("if", condition.0)
    }
}

/// Steps in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// Adds a step. Returns its result: `body`, `status`, `status_code`, `error`.
    pub fn add(&mut self, step: Step) -> Ref {
        let reference = self.get(&step.name);
        self.0.push(step);
        reference
    }

    /// The result of a step by its name.
    pub fn get(&self, name: &str) -> Ref {
        let tasks = Ref("tasks".into());
        if read::is_plain(name) { tasks.at(name) } else { tasks.key(name) }
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|step| step.name.as_str()).collect()
    }

    fn written(&self, around: &[&str]) -> Result<Value, Error> {
        let known = self.names();
        let mut tasks = Map::new();
        for step in &self.0 {
            let name = &step.name;
            let mut fields = step.fields.clone();
            let inner = step.body.as_ref().map(Steps::names).unwrap_or_default();
            if let Some(body) = &step.body {
                let around: Vec<&str> = around.iter().chain(&known).copied().collect();
                fields.insert("tasks".into(), body.written(&around)?);
            }
            let read =
                fields.iter().flat_map(|(key, value)| reads(key, value)).filter(|read| !inner.contains(&read.as_str()));
            let mut needs: Vec<String> = Vec::new();
            for need in step.needs.iter().cloned().chain(read) {
                if !known.contains(&need.as_str()) && !around.contains(&need.as_str()) {
                    return Err(Error::Build(format!("step {name:?} reads {need:?}, but there is no such step")));
                }
                if known.contains(&need.as_str()) && !needs.contains(&need) {
                    needs.push(need);
                }
            }
            let mut task = Map::new();
            if !needs.is_empty() {
                task.insert("needs".into(), needs.into());
            }
            task.extend(fields);
            if tasks.insert(name.clone(), task.into()).is_some() {
                return Err(Error::Build(format!("there are two steps {name:?}")));
            }
        }
        Ok(tasks.into())
    }

    fn loaded(tasks: &Value) -> Result<Steps, Error> {
        let odd = |name: &str| Error::Build(format!("{name:?} is not a map"));
        let mut steps = Steps::default();
        for (name, task) in tasks.as_object().ok_or_else(|| odd("tasks"))? {
            let mut fields = task.as_object().ok_or_else(|| odd(name))?.clone();
            let needs = match fields.shift_remove("needs") {
                Some(Value::Array(needs)) => needs,
                Some(need) => vec![need],
                None => Vec::new(),
            };
            let needs = needs.iter().filter_map(Value::as_str).map(str::to_string).collect();
            let body = fields.shift_remove("tasks").map(|body| Steps::loaded(&body)).transpose()?;
            steps.0.push(Step { name: name.clone(), needs, fields, body });
        }
        Ok(steps)
    }
}

/// A workflow in the tasks dialect.
#[derive(Clone, Debug)]
pub struct Workflow {
    fields: Map<String, Value>,
    steps: Steps,
    output: Option<Value>,
}

impl Workflow {
    /// A workflow without steps.
    pub fn new(name: &str) -> Workflow {
        let fields = Map::from_iter([("name".to_string(), Value::from(name))]);
        Workflow { fields, steps: Steps::default(), output: None }
    }

    /// A definition in the tasks dialect, such as the `definition` of a workflow that the server returned.
    pub fn load(definition: &Value) -> Result<Workflow, Error> {
        let odd = || Error::Build("this is not a definition in the tasks dialect".into());
        let mut fields = definition.as_object().cloned().ok_or_else(odd)?;
        let steps = Steps::loaded(&fields.shift_remove("tasks").ok_or_else(odd)?)?;
        let output = fields.shift_remove("output");
        Ok(Workflow { fields, steps, output })
    }

    /// Adds a step. Returns its result: `body`, `status`, `status_code`, `error`.
    pub fn add(&mut self, step: Step) -> Ref {
        self.steps.add(step)
    }

    /// The result of a step by its name.
    pub fn get(&self, name: &str) -> Ref {
        self.steps.get(name)
    }

    /// A field beside the steps, such as `concurrency` or `trigger`.
    pub fn field(&mut self, name: &str, value: impl Serialize) {
        self.fields.insert(name.to_string(), json!(value));
    }

    /// The result of the run.
    pub fn output(&mut self, output: impl Serialize) {
        self.output = Some(json!(output));
    }

    /// The definition, as JSON.
    pub fn definition(&self) -> Result<Value, Error> {
        let mut definition = self.fields.clone();
        definition.insert("tasks".into(), self.steps.written(&[])?);
        if let Some(output) = &self.output {
            let known = self.steps.names();
            if let Some(missing) = reads("output", output).find(|read| !known.contains(&read.as_str())) {
                return Err(Error::Build(format!("the output reads {missing:?}, but there is no such step")));
            }
            definition.insert("output".into(), output.clone());
        }
        Ok(definition.into())
    }

    /// The definition as YAML.
    pub fn to_yaml(&self) -> Result<String, Error> {
        Ok(yaml::write(&self.definition()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Workflow {
        let mut order = Workflow::new("order");
        order.field("retention", "90d");
        let charge = order.add(Step::http("charge", "https://pay.example/charges").field("retries", 3));
        let ask = order.add(Step::approval("ask", json!({"message": format!("Ship {}?", charge.at("body.id"))})));
        let mut body = Steps::default();
        let sent = body.add(Step::tool("send it", "ship", json!({"item": item(), "payment": charge.at("body.id")})));
        body.add(Step::tool("note", "log", json!({"id": sent.at("body.id"), "at": index()})));
        order.add(Step::for_each("each", input().at("items"), body).needs(&ask));
        let unpaid = charge.at("status").ne("success").and(&charge.at("body.cents").or(0).lt(5));
        order.add(Step::tool("apologise", "mail", json!({})).when(unpaid.or(&input().at("test").eq(true).not())));
        order.output(json!({"payment": charge.at("body.id")}));
        order
    }

    #[test]
    fn what_a_step_reads_it_needs() {
        let definition = order().definition().unwrap();
        let tasks = &definition["tasks"];
        assert_eq!(tasks["ask"]["needs"], json!(["charge"]));
        assert_eq!(tasks["each"]["needs"], json!(["ask", "charge"]));
        assert_eq!(tasks["each"]["tasks"]["note"]["needs"], json!(["send it"]));
        assert_eq!(tasks["each"]["tasks"]["send it"].get("needs"), None);
        assert_eq!(tasks["apologise"]["needs"], json!(["charge"]));
        let condition =
            "((tasks.charge.status != \"success\") && ((tasks.charge.body.cents ?? 0) < 5)) || (!(input.test == true))";
        assert_eq!(tasks["apologise"]["if"], condition);
        assert_eq!(definition["output"], json!({"payment": "{{tasks.charge.body.id}}"}));
    }

    #[test]
    fn a_definition_loads_back() {
        let definition = order().definition().unwrap();
        let mut loaded = Workflow::load(&definition).unwrap();
        assert_eq!(loaded.definition().unwrap(), definition);
        let last = Step::tool("last", "log", json!({"id": loaded.get("charge").at("body.id")}));
        loaded.add(last);
        assert_eq!(loaded.definition().unwrap()["tasks"]["last"]["needs"], json!(["charge"]));
    }

    #[test]
    fn a_missing_step_is_named() {
        let mut flow = Workflow::new("flow");
        flow.add(Step::tool("a", "echo", json!({"text": order().get("charge").at("body")})));
        let error = flow.definition().unwrap_err().to_string();
        assert_eq!(error, "step \"a\" reads \"charge\", but there is no such step");
        let mut twice = Workflow::new("twice");
        twice.add(Step::sleep("a", "1s"));
        twice.add(Step::sleep("a", "1s"));
        assert_eq!(twice.definition().unwrap_err().to_string(), "there are two steps \"a\"");
    }
}
