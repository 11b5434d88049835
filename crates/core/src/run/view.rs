//! The values that an expression can read at one point of a run.

use super::code::Reads;
use super::{At, CtxValue, Phase, Run, Status, StepState};
use crate::event::Failure;
use crate::expr::{Dotted, Found, Names, Path, Segment, StepIx, Val, Var, walk};
use crate::graph::{Graph, Kind, ScopeIx};
use crate::time::Time;
use crate::value::ValueId;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::HashSet;

/// The names in scope for a step, or for the end of an instance.
pub struct View<'a> {
    pub graph: &'a Graph,
    pub run: &'a Run,
    pub instance: u32,
    /// The step's own result, in a branch.
    pub result: Option<OwnResult<'a>>,
    /// The callback URL of a wait, by its path.
    pub callback: &'a dyn Fn(&str) -> String,
    /// The time of the decision.
    pub now: Time,
    /// Counts the bytes that expressions read or copy.
    pub work: &'a Cell<u64>,
}

#[derive(Clone, Copy)]
pub struct OwnResult<'a> {
    pub step: StepIx,
    pub value: &'a Value,
    pub truncated: bool,
}

impl Names for View<'_> {
    fn spend(&self, bytes: usize) {
        self.work.set(self.work.get() + bytes as u64);
    }

    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        let found = self.follow(path);
        if let Found::Value(value @ Val::Owned(_)) = &found {
            self.spend(value.cost());
        }
        found
    }
}

impl View<'_> {
    fn follow<'a>(&'a self, path: &Path) -> Found<'a> {
        let rest = path.rest();
        match path.var {
            Var::Unbound => Found::Nothing,
            Var::Input => self.value(self.run.input, rest),
            Var::Trigger => self.trigger(rest),
            Var::Step(step) => self.step(step, rest),
            Var::Ctx(number) => match self.ctx(number) {
                Some(ctx) if ctx.truncated && !rest.is_empty() => self.truncated(ctx.step, "body", rest),
                ctx => self.value(ctx.map(|ctx| ctx.value), rest),
            },
            Var::CtxAll => Found::Value(Val::Owned(self.context())),
            Var::Result => match self.result {
                Some(result) if result.truncated && !rest.is_empty() => self.truncated(result.step, "result", rest),
                result => result.and_then(|result| walk(result.value, rest)).map_or(Found::Nothing, found),
            },
            Var::WaitUrl(step) => match self.enclosing(self.graph.step(step).scope) {
                Some(instance) => {
                    let url = (self.callback)(&self.run.path(self.graph, At { instance, step }));
                    Found::Value(Val::Owned(Value::String(url)))
                }
                None => Found::Nothing,
            },
            Var::Item(scope) => {
                self.item(ScopeIx(scope)).and_then(|value| walk(value, rest)).map_or(Found::Nothing, found)
            }
            Var::Index(scope) => match self.index(ScopeIx(scope)) {
                Some(index) if rest.is_empty() => Found::Value(Val::Int(i64::from(index))),
                _ => Found::Nothing,
            },
            Var::RunId if rest.is_empty() => Found::Value(Val::Str(&self.run.id)),
            Var::RunId => Found::Nothing,
            Var::Now if rest.is_empty() => Found::Value(Val::Owned(self.now.to_string().into())),
            Var::Now => Found::Nothing,
            Var::Vars => self.value(self.run.vars, rest),
            Var::Secret => Found::Secret,
        }
    }
}

fn found(value: &Value) -> Found<'_> {
    Found::Value(Val::Json(value))
}

impl<'a> View<'a> {
    fn value<'s>(&'s self, id: Option<ValueId>, rest: &[Segment]) -> Found<'s> {
        let value = id.and_then(|id| self.run.values.get(id));
        value.and_then(|value| walk(value, rest)).map_or(Found::Nothing, found)
    }

    /// The error for reading into a truncated body: names the step and the field.
    fn truncated<'s>(&'s self, step: StepIx, field: &str, inner: &[Segment]) -> Found<'s> {
        let inner = Dotted(inner).to_string();
        let dot = if inner.starts_with('[') { "" } else { "." };
        Found::Truncated { step: &self.graph.step(step).def.name, field: format!("{field}{dot}{inner}") }
    }

    fn trigger<'s>(&'s self, rest: &[Segment]) -> Found<'s> {
        match rest.first() {
            Some(Segment::Key(key)) if &**key == "body" => self.value(self.run.input, &rest[1..]),
            Some(Segment::Key(key)) if matches!(&**key, "headers" | "query") => {
                match if &**key == "headers" { self.run.headers } else { self.run.query } {
                    None if rest.len() == 1 => Found::Value(Val::Owned(json!({}))),
                    part => self.value(part, &rest[1..]),
                }
            }
            Some(_) => Found::Nothing,
            None => {
                let part = |id: Option<ValueId>| id.and_then(|id| self.run.values.get(id)).cloned();
                let fields = |id| part(id).unwrap_or_else(|| json!({}));
                let (headers, query) = (fields(self.run.headers), fields(self.run.query));
                let trigger = json!({"body": part(self.run.input), "headers": headers, "query": query});
                Found::Value(Val::Owned(trigger))
            }
        }
    }

    /// Whether the view is inside this scope.
    pub(crate) fn encloses(&self, scope: ScopeIx) -> bool {
        self.enclosing(scope).is_some()
    }

    /// The instance of this scope that encloses the view's own.
    fn enclosing(&self, scope: ScopeIx) -> Option<u32> {
        let mut instance = self.instance;
        while self.run.instances[instance as usize].scope != scope {
            instance = self.run.instances[instance as usize].parent?.0.instance;
        }
        Some(instance)
    }

    /// The frame in which names of this scope are kept.
    fn frame(&self, scope: ScopeIx) -> Option<u32> {
        let wanted = self.graph.scope(scope).frame;
        let mut frame = self.run.instances[self.instance as usize].frame;
        while self.run.instances[frame as usize].scope != wanted {
            let (owner, _) = self.run.instances[frame as usize].parent?;
            frame = self.run.instances[owner.instance as usize].frame;
        }
        Some(frame)
    }

    /// The instance that a step's name refers to here: its only one, or the latest one in a loop.
    pub fn named(&self, step: StepIx) -> Option<At> {
        let scope = self.graph.step(step).scope;
        let frame = self.frame(scope)?;
        if self.run.instances[frame as usize].scope == scope {
            return Some(At { instance: frame, step });
        }
        self.run.instances[frame as usize].names.latest.get(&step).copied()
    }

    fn step<'s>(&'s self, step: StepIx, rest: &[Segment]) -> Found<'s> {
        let Some(state) = self.named(step).map(|at| self.run.state(self.graph, at)).filter(|s| s.status().is_some())
        else {
            return Found::Nothing;
        };
        let Some((field, inner)) = rest.split_first() else {
            return Found::Value(Val::Owned(self.summary(step, state)));
        };
        let Segment::Key(field) = field else { return Found::Nothing };
        match &**field {
            "status" if inner.is_empty() => Found::Value(Val::Str(self.status(step, state))),
            "status_code" if inner.is_empty() => {
                let code = state.output.and_then(|output| output.status_code);
                Found::Value(code.map_or(Val::Null, |code| Val::Int(i64::from(code))))
            }
            // A gate's result is a single word; the approver and comment are in its body.
            "result" if inner.is_empty() && self.is_gate(step) => {
                let approved = state.phase == Phase::Done(Status::Success);
                Found::Value(Val::Str(if approved { "approved" } else { self.status(step, state) }))
            }
            "body" | "result" | "output" => match state.output {
                Some(output) if output.truncated && !inner.is_empty() => {
                    let field = field.to_string();
                    self.truncated(step, &field, inner)
                }
                Some(output) => self.value(Some(output.body), inner),
                None if inner.is_empty() => Found::Value(Val::Null),
                None => Found::Nothing,
            },
            "headers" => match state.output.and_then(|output| output.headers) {
                Some(headers) => self.value(Some(headers), inner),
                None if inner.is_empty() => Found::Value(Val::Null),
                None => Found::Nothing,
            },
            "error" => match (state.failure(), inner) {
                (Some(failure), []) => Found::Value(Val::Owned(error(failure))),
                (Some(failure), [Segment::Key(key)]) if &**key == "message" => Found::Value(Val::Str(&failure.message)),
                (Some(failure), [Segment::Key(key)]) if &**key == "code" => Found::Value(Val::Str(&failure.code)),
                (None, []) => Found::Value(Val::Null),
                _ => Found::Nothing,
            },
            _ => Found::Nothing,
        }
    }

    fn is_gate(&self, step: StepIx) -> bool {
        matches!(self.graph.step(step).def.kind, Kind::Gate(_))
    }

    /// The status as expressions read it: a wait that was called is `received`.
    fn status(&self, step: StepIx, state: &StepState) -> &'static str {
        match (&self.graph.step(step).def.kind, state.phase) {
            (Kind::Webhook { .. }, Phase::Done(Status::Success)) => "received",
            (_, phase) => phase.name(),
        }
    }

    fn summary(&self, step: StepIx, state: &StepState) -> Value {
        let part = |id: Option<ValueId>| id.and_then(|id| self.run.values.get(id)).cloned();
        json!({
            "status": self.status(step, state),
            "status_code": state.output.and_then(|output| output.status_code),
            "body": part(state.output.map(|output| output.body)),
            "headers": part(state.output.and_then(|output| output.headers)),
            "error": state.failure().map(error),
        })
    }

    fn ctx(&self, number: u32) -> Option<CtxValue> {
        let mut frame = self.run.instances[self.instance as usize].frame;
        loop {
            let instance = &self.run.instances[frame as usize];
            if let Some(Some(value)) = instance.names.ctx.get(number as usize) {
                return Some(*value);
            }
            let (owner, _) = instance.parent?;
            frame = self.run.instances[owner.instance as usize].frame;
        }
    }

    fn index(&self, scope: ScopeIx) -> Option<u32> {
        self.run.instances[self.enclosing(scope)? as usize].parent.map(|(_, index)| index)
    }

    fn item(&self, scope: ScopeIx) -> Option<&Value> {
        let (owner, index) = self.run.instances[self.enclosing(scope)? as usize].parent?;
        let items = self.run.values.get(self.run.state(self.graph, owner).input?)?;
        items.as_array()?.get(index as usize)
    }

    /// The context of a code step: the parts of `ctx` that it reads and, except in graphs, the earlier steps that it
    /// reads.
    pub fn context_of(&self, step: StepIx, code: &str) -> Value {
        let reads = Reads::of(code);
        let mut context = self.context_with(&reads);
        if let Some(order) = &self.graph.order {
            let own = step.0 as usize;
            let steps: Vec<usize> = match &reads.tasks {
                None => order.visible(own).collect(),
                Some(names) => names.iter().filter_map(|name| order.named(own, name)).collect(),
            };
            let mut tasks = Map::new();
            for other in steps.into_iter().map(|other| StepIx(other as u32)) {
                let state = self.named(other).map(|at| self.run.state(self.graph, at)).filter(|s| s.status().is_some());
                if let (Some(state), name) = (state, &self.graph.step(other).def.name) {
                    tasks.entry(name.to_string()).or_insert_with(|| self.summary(other, state));
                }
            }
            context["tasks"] = Value::Object(tasks);
        }
        context
    }

    /// The input, `ctx` variables and loop items.
    fn context(&self) -> Value {
        self.context_with(&Reads { variables: None, tasks: None })
    }

    fn context_with(&self, reads: &Reads) -> Value {
        let mut all = Map::new();
        for (number, name) in self.graph.variables.iter().enumerate().filter(|(_, name)| reads.variable(name)) {
            if let Some(value) = self.ctx(number as u32).and_then(|ctx| self.run.values.get(ctx.value)) {
                all.insert(name.to_string(), value.clone());
            }
        }
        // An item hides a variable of the same name, and an inner item an outer one, as in expressions.
        let mut taken = HashSet::new();
        let mut instance = Some(self.instance);
        while let Some(at) = instance {
            let parent = self.run.instances[at as usize].parent;
            if let Some((owner, index)) = parent
                && let Kind::Each(each) = &self.graph.step(owner.step).def.kind
            {
                let item = each.item_variable.as_deref().unwrap_or("item");
                if reads.variable(item) && taken.insert(item) {
                    all.insert(item.to_string(), self.item(each.body).cloned().unwrap_or_default());
                }
                let place = each.index_variable.as_deref().unwrap_or("index");
                if taken.insert(place) {
                    all.insert(place.to_string(), index.into());
                }
            }
            instance = parent.map(|(owner, _)| owner.instance);
        }
        if !self.graph.vars.is_empty() && reads.variable("vars") {
            let vars = self.run.vars.and_then(|id| self.run.values.get(id)).cloned();
            all.insert("vars".into(), vars.unwrap_or_default());
        }
        if reads.variable("input") {
            let input = self.run.input.and_then(|id| self.run.values.get(id)).cloned();
            all.insert("input".into(), input.unwrap_or_default());
        }
        Value::Object(all)
    }
}

/// A failure as expressions and results show it.
pub fn error(failure: &Failure) -> Value {
    json!({"code": &*failure.code, "message": &*failure.message})
}
