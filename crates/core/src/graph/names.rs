//! Binds the names in expressions to what they stand for, and rejects names that cannot have a value yet.

use super::build::Fault;
use super::reach::Reach;
use super::spec::{Origin, Spec};
use super::{Arm, Call, Dialect, Graph, Kind, Sleep, StepDef, Test};
use crate::expr::{Expr, Path, Segment, StepIx, Var};
use crate::limits;
use crate::nearest::nearest;
use crate::quote::quote;
use crate::template::Template;
use std::collections::HashMap;
use std::sync::Arc;

const ROOTS: [&str; 13] =
    ["trigger", "input", "tasks", "steps", "ctx", "vars", "result", "wait", "item", "index", "run", "now", "secrets"];
/// What the value of a var may read, and secrets, which have a message of their own.
const AT_START: [&str; 6] = ["trigger", "input", "vars", "run", "now", "secrets"];
/// The fields of a step; `result` and `output` are synonyms of `body`.
const FIELDS: [&str; 7] = ["status", "status_code", "body", "headers", "error", "result", "output"];

/// The most names that a misspelt one is compared with.
const MAX_COMPARED: usize = 2_000;
/// The most hyphens of a name that are tried as a subtraction.
const MAX_HYPHENS: usize = 8;

/// Where an expression is used, which decides what it may name.
#[derive(Clone, Copy)]
struct Site {
    /// The step the expression belongs to; `None` for the run's output.
    step: Option<usize>,
    /// Steps of this group (a for_each step, or the definition) are looked up first.
    group: Option<usize>,
    /// Evaluated after everything in the group has ended (a for_each's `output`, the run's `output`).
    at_end: bool,
    result: bool,
    secrets: bool,
    /// For the value of a var: how many vars come before it.
    vars_before: Option<usize>,
    origin: Origin,
}

impl Site {
    /// A place outside of all steps, at the end of the run.
    fn end(origin: Origin) -> Site {
        Site { step: None, group: None, at_end: true, result: false, secrets: false, vars_before: None, origin }
    }
}

pub struct Binder<'a> {
    spec: &'a Spec,
    graph: &'a mut Graph,
    /// (group, name or alias) → position.
    names: HashMap<(Option<usize>, &'a str), usize>,
    variables: Vec<Arc<str>>,
    /// Steps that write a variable.
    writers: HashMap<&'a str, Vec<usize>>,
    reach: Reach,
    /// Whether the edges are complete: otherwise the order of steps is unknown.
    edges: bool,
    /// A loop that any step may be in, used if the bodies of a graph's loops are unknown.
    any_loop: Option<usize>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
}

impl<'a> Binder<'a> {
    pub fn new(spec: &'a Spec, graph: &'a mut Graph) -> Binder<'a> {
        let mut names = HashMap::new();
        let mut variables: Vec<Arc<str>> = Vec::new();
        let mut writers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, step) in spec.steps.iter().enumerate() {
            for name in step.aliases.iter().map(String::as_str).chain([&*step.def.name]) {
                names.entry((step.parent, name)).or_insert(i);
            }
            if let Some(variable) = &step.def.output_variable {
                variables.push(variable.clone());
                writers.entry(&**variable).or_default().push(i);
            }
        }
        variables.sort();
        variables.dedup();
        let mut targets = vec![Vec::new(); spec.steps.len()];
        for edge in &spec.edges {
            targets[edge.from].push(edge.to);
        }
        graph.variables = variables.iter().map(|name| (**name).into()).collect();
        Binder {
            spec,
            graph,
            names,
            variables,
            writers,
            reach: Reach::new(&targets),
            edges: true,
            any_loop: None,
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Leaves out every fault that depends on edges.
    pub fn without_edges(mut self) -> Binder<'a> {
        self.edges = false;
        if self.spec.dialect == Dialect::Graph {
            for (i, step) in self.spec.steps.iter().enumerate() {
                let Kind::Each(each) = &step.def.kind else { continue };
                self.variables.extend(each.item_variable.iter().chain(&each.index_variable).cloned());
                self.any_loop = self.any_loop.or(Some(i));
            }
            self.variables.sort();
            self.variables.dedup();
        }
        self
    }

    pub fn bind(mut self) -> Vec<Fault> {
        for i in 0..self.spec.steps.len() {
            let mut def = self.graph.steps[i].def.clone();
            self.step(i, &mut def);
            let number = def.output_variable.as_ref().and_then(|name| self.variables.binary_search(name).ok());
            self.graph.steps[i].variable = number.map(|n| n as u32);
            self.graph.steps[i].def = def;
        }
        if let (Some(mut output), Some((_, origin))) = (self.graph.output.take(), &self.spec.output) {
            self.template(&mut output, Site::end(*origin));
            self.graph.output = Some(output);
        }
        let mut vars = std::mem::take(&mut self.graph.vars);
        for (n, ((_, value), var)) in vars.iter_mut().zip(&self.spec.vars).enumerate() {
            self.template(value, Site { vars_before: Some(n), ..Site::end(var.origin) });
        }
        self.graph.vars = vars;
        self.graph.warnings = std::mem::take(&mut self.warnings);
        let code = |step: &super::Step| matches!(step.def.kind, Kind::Call { call: Call::Javascript, .. });
        if self.spec.dialect != Dialect::Graph && self.graph.steps.iter().any(code) {
            let parent = self.spec.steps.iter().map(|step| step.parent).collect();
            let names = self.names.iter().map(|(&(group, name), &step)| ((group, name.into()), step)).collect();
            self.graph.order = Some(Arc::new(super::Order { parent, names, reach: self.reach }));
        }
        self.faults
    }

    fn step(&mut self, i: usize, def: &mut StepDef) {
        let step = &self.spec.steps[i];
        let plain = Site { step: Some(i), group: step.parent, at_end: false, ..Site::end(step.origin) };
        if let Some(condition) = &mut def.condition {
            self.expr(condition, plain);
        }
        self.arms(&mut def.branches, Site { result: true, ..plain });
        match &mut def.kind {
            Kind::Call { call, input } => {
                let secrets = matches!(call, Call::Http | Call::Tool | Call::Query);
                self.template(input, Site { secrets, ..plain });
            }
            Kind::Pass { output: Some(template) } => self.template(template, plain),
            Kind::Pass { output: None } | Kind::Webhook { .. } | Kind::Loop { .. } | Kind::Sleep(Sleep::For(_)) => {}
            Kind::Condition { arms } => self.arms(arms, plain),
            Kind::End { outputs } => outputs.iter_mut().for_each(|(_, template)| self.template(template, plain)),
            Kind::Sleep(Sleep::ForValue(template) | Sleep::Until(template)) => self.template(template, plain),
            Kind::Gate(gate) => self.template(&mut gate.ask, plain),
            Kind::Child { input, .. } => self.template(input, plain),
            Kind::Each(each) => {
                self.template(&mut each.items, plain);
                if let Some(output) = &mut each.output {
                    self.template(output, Site { group: Some(i), at_end: true, ..plain });
                }
            }
        }
    }

    fn arms(&mut self, arms: &mut [Arm], site: Site) {
        for arm in arms {
            match &mut arm.test {
                Test::Always => {}
                Test::Expr(expr) => self.expr(expr, site),
                Test::Rules { rules, .. } => {
                    for rule in rules {
                        self.template(&mut rule.left, site);
                        self.template(&mut rule.right, site);
                    }
                }
            }
        }
    }

    fn template(&mut self, template: &mut Template, site: Site) {
        for expr in template.exprs_mut() {
            self.expr(expr, site);
        }
    }

    fn expr(&mut self, expr: &mut Expr, site: Site) {
        for path in expr.paths_mut() {
            // No one reads more, and searching for suggestions takes time.
            if self.faults.len() >= 2 * limits::MAX_FAULTS {
                return;
            }
            let (origin, name) = (site.origin, || Some(path.to_string()));
            match self.resolve(path, site) {
                Ok((var, rest)) => {
                    if let Some(hint) = self.subtraction(path, site).filter(|_| rest < path.segments.len()) {
                        let message = "a hyphen is a part of the name".to_owned();
                        let code = "hyphen-in-name";
                        self.warnings.push(Fault { origin, name: name(), code, message, hint: Some(hint) });
                    }
                    path.bind(var, rest);
                }
                Err(Unbound { code, message, hint }) => {
                    let hint = self.subtraction(path, site).or(hint);
                    self.faults.push(Fault { origin, name: name(), code, message, hint });
                }
            }
        }
    }

    /// The hint for a name with a hyphen that was meant as a subtraction: both sides are names, or the right one is a
    /// number.
    fn subtraction(&self, path: &Path, site: Site) -> Option<String> {
        path.segments.iter().enumerate().find_map(|(n, segment)| {
            let Segment::Key(key) = segment else { return None };
            let rest = &path.segments[n + 1..];
            key.match_indices('-').take(MAX_HYPHENS).find_map(|(at, _)| {
                let (left, right) = (&key[..at], &key[at + 1..]);
                let number = rest.is_empty() && !right.is_empty() && right.bytes().all(|b| b.is_ascii_digit());
                let named = |segments: Vec<Segment>| {
                    let path = Path { segments, ..path.clone() };
                    self.resolve(&path, site).is_ok().then(|| path.to_string())
                };
                let first = path.segments[..n].iter().cloned().chain([Segment::Key(left.into())]);
                let left = named(first.collect()).filter(|_| !left.is_empty())?;
                let second = [Segment::Key(right.into())].into_iter().chain(rest.iter().cloned());
                let right = match number {
                    // A key of data may well end with a number.
                    true if self.resolve(path, site).is_ok() => None,
                    true => Some(right.to_owned()),
                    false => named(second.collect()),
                }?;
                Some(format!("to subtract, put a space on each side: {left} - {right}"))
            })
        })
    }

    fn resolve(&self, path: &Path, site: Site) -> Result<(Var, usize), Unbound> {
        let key = |n: usize| match path.segments.get(n) {
            Some(Segment::Key(key)) => Some(&**key),
            _ => None,
        };
        let root = key(0).unwrap_or_default();
        if site.vars_before.is_some() && ROOTS.contains(&root) && !AT_START.contains(&root) {
            let message = format!("`{root}` is not known when the run starts, and then `vars` are computed");
            return Err(misplaced(&message, "a var can read input, trigger, run.id, now and the vars before it"));
        }
        match root {
            "now" if path.segments.len() == 1 => Ok((Var::Now, 1)),
            "now" => Err(misplaced("`now` is a string and has no fields", "date(now, null, '%Y') formats it")),
            "vars" => self.var(key(1), site),
            "input" => Ok((Var::Input, 1)),
            "trigger" => match key(1) {
                None | Some("body" | "headers" | "query") => Ok((Var::Trigger, 1)),
                Some(other) => {
                    let parts = ["body", "headers", "query"];
                    Err(unknown("a trigger has only `body`, `headers` and `query`", other, parts))
                }
            },
            "tasks" | "steps" => self.step_name(root, key(1), key(2), site),
            "ctx" => self.variable(key(1), site),
            "result" if site.result => Ok((Var::Result, 1)),
            "result" => Err(misplaced("`result` is known only in a `branch`", "name the step: steps.<name>.body")),
            "wait" => self.wait(key(1), key(2), site),
            "item" | "index" => self.item(root, site),
            "run" if key(1) == Some("id") => Ok((Var::RunId, 2)),
            "run" => Err(unknown("a run has only an `id`", key(1).unwrap_or_default(), ["id"])),
            "secrets" if !site.secrets => Err(misplaced(
                "secrets can be used only in the input of http, tool and query steps",
                "pass the secret to such a step directly",
            )),
            "secrets" if path.segments.len() == 2 && key(1).is_some() => Ok((Var::Secret, 1)),
            "secrets" => Err(misplaced("a secret is read as a whole", "write secrets.NAME")),
            _ if self.find(root, site.group).is_some() => Err(Unbound {
                code: "unknown-name",
                message: format!("no value is named {}", quote(root)),
                hint: Some(format!("to read the step of that name, write tasks.{root}")),
            }),
            _ => Err(unknown(&format!("no value is named {}", quote(root)), root, ROOTS)),
        }
    }

    fn var(&self, name: Option<&str>, site: Site) -> Result<(Var, usize), Unbound> {
        let all = || self.spec.vars.iter().map(|var| &*var.name);
        let known = site.vars_before.unwrap_or(self.spec.vars.len());
        match name {
            _ if self.spec.vars.is_empty() => {
                Err(misplaced("the definition has no `vars`", "write them beside the steps: vars: {name: value}"))
            }
            None if known < self.spec.vars.len() => Err(misplaced("name the var", "write vars.<name>")),
            None => Ok((Var::Vars, 1)),
            Some(name) => match all().position(|var| var == name) {
                Some(found) if found < known => Ok((Var::Vars, 1)),
                Some(_) => Err(Unbound {
                    code: "not-before",
                    message: format!("vars.{name} is not computed before this one"),
                    hint: Some("vars are computed from top to bottom; put it first".into()),
                }),
                None => Err(Unbound {
                    code: "unknown-name",
                    message: format!("no var is named {}", quote(name)),
                    hint: nearest(name, all().take(known)).map(|near| format!("did you mean {}?", quote(near))),
                }),
            },
        }
    }

    /// Looks up a step in the group and then in the enclosing groups.
    fn find(&self, name: &str, group: Option<usize>) -> Option<usize> {
        let mut group = group;
        loop {
            if let Some(&found) = self.names.get(&(group, name)) {
                return Some(found);
            }
            group = self.spec.steps[group?].parent;
        }
    }

    fn step_name(
        &self,
        root: &str,
        name: Option<&str>,
        field: Option<&str>,
        site: Site,
    ) -> Result<(Var, usize), Unbound> {
        let name = name.ok_or_else(|| misplaced("a step's name is missing", &format!("write {root}.<name>.body")))?;
        let Some(found) = self.find(name, site.group) else {
            let all = self.spec.steps.iter().map(|step| &*step.def.name).take(MAX_COMPARED);
            if self.spec.steps.iter().any(|step| &*step.def.name == name) {
                return Err(misplaced(
                    &format!("step {} is inside a for_each body and cannot be read from outside", quote(name)),
                    "read the result of the for_each step instead",
                ));
            }
            return Err(Unbound {
                code: "unknown-step",
                message: format!("no step named {}", quote(name)),
                hint: nearest(name, all).map(|near| format!("did you mean {}?", quote(near))),
            });
        };
        if let Some(field) = field
            && !FIELDS.contains(&field)
        {
            return Err(unknown(&format!("a step has no field {}", quote(field)), field, FIELDS));
        }
        if !self.before(found, site) {
            return Err(Unbound {
                code: "not-before",
                message: format!("step {} cannot have finished by then", quote(name)),
                hint: Some("an expression can read only steps that come before its own".into()),
            });
        }
        Ok((Var::Step(StepIx(found as u32)), 2))
    }

    /// Whether `first` can have finished when the expression is evaluated.
    fn before(&self, first: usize, site: Site) -> bool {
        let group = self.spec.steps[first].parent;
        if !self.edges || (site.at_end && group == site.group) {
            return true;
        }
        // The step, or the for_each around it, that is in the same group as `first`.
        let mut second = match site.step {
            Some(step) => step,
            None => return true,
        };
        while self.spec.steps[second].parent != group {
            match self.spec.steps[second].parent {
                Some(parent) => second = parent,
                None => return false,
            }
        }
        self.reach.before(first, second)
    }

    fn variable(&self, name: Option<&str>, site: Site) -> Result<(Var, usize), Unbound> {
        let Some(name) = name else { return Ok((Var::CtxAll, 1)) };
        if name == "input" {
            return Ok((Var::Input, 2));
        }
        for each in self.enclosing_loops(site) {
            let Kind::Each(config) = &self.graph.steps[each].def.kind else { continue };
            if config.item_variable.as_deref() == Some(name) {
                return Ok((Var::Item(config.body.0), 2));
            }
            if config.index_variable.as_deref() == Some(name) {
                return Ok((Var::Index(config.body.0), 2));
            }
        }
        let Ok(number) = self.variables.binary_search_by(|v| (**v).cmp(name)) else {
            return Err(Unbound {
                code: "unknown-name",
                message: format!("no step writes ctx.{name}"),
                hint: nearest(name, self.variables.iter().map(|v| &**v).take(MAX_COMPARED))
                    .map(|near| format!("did you mean {}?", quote(near))),
            });
        };
        let writers = self.writers.get(name).map(Vec::as_slice).unwrap_or_default();
        let written =
            writers.iter().any(|&writer| self.lift(writer, site.group).is_some_and(|writer| self.before(writer, site)));
        if self.edges && !written {
            return Err(Unbound {
                code: "not-before",
                message: "it is written only by steps that cannot have finished by then".to_string(),
                hint: Some("read it after the step that writes it".into()),
            });
        }
        Ok((Var::Ctx(number as u32), 2))
    }

    /// The writer as seen from `group`: itself, or the sequential for_each around it that is visible from `group`.
    fn lift(&self, writer: usize, group: Option<usize>) -> Option<usize> {
        let sight: Vec<Option<usize>> =
            std::iter::successors(Some(group), |g| g.map(|each| self.spec.steps[each].parent)).collect();
        let mut writer = writer;
        while !sight.contains(&self.spec.steps[writer].parent) {
            writer = self.spec.steps[writer].parent?;
            match &self.graph.steps[writer].def.kind {
                Kind::Each(each) if each.max_parallel == 1 => {}
                _ => return None,
            }
        }
        Some(writer)
    }

    /// The for_each steps around the expression, innermost first.
    fn enclosing_loops(&self, site: Site) -> impl Iterator<Item = usize> {
        std::iter::successors(site.group, |&each| self.spec.steps[each].parent)
    }

    fn item(&self, root: &str, site: Site) -> Result<(Var, usize), Unbound> {
        let each = self.enclosing_loops(site).next().or(self.any_loop).ok_or_else(|| {
            misplaced(&format!("`{root}` is known only inside a for_each body"), "read the list itself instead")
        })?;
        let body = self.graph.steps[each].def.kind.body().unwrap_or(super::ScopeIx::ROOT);
        Ok((if root == "item" { Var::Item(body.0) } else { Var::Index(body.0) }, 1))
    }

    fn wait(&self, name: Option<&str>, field: Option<&str>, site: Site) -> Result<(Var, usize), Unbound> {
        let name = name.ok_or_else(|| misplaced("a step's name is missing", "write wait.<name>.url"))?;
        let waits = || {
            let webhooks = self.spec.steps.iter().filter(|step| matches!(step.def.kind, Kind::Webhook { .. }));
            webhooks.map(|step| &*step.def.name)
        };
        let found = self.find(name, site.group);
        let Some(found) = found.filter(|&i| matches!(self.spec.steps[i].def.kind, Kind::Webhook { .. })) else {
            return Err(Unbound {
                code: "unknown-step",
                message: format!("no wait_for_webhook step named {}", quote(name)),
                hint: nearest(name, waits().take(MAX_COMPARED)).map(|near| format!("did you mean {}?", quote(near))),
            });
        };
        if field != Some("url") {
            return Err(unknown("a wait has only a `url`", field.unwrap_or_default(), ["url"]));
        }
        if !self.encloses(found, site) {
            let hint = "read it inside the loop";
            return Err(misplaced("the URL differs in every pass of the loop around that step", hint));
        }
        Ok((Var::WaitUrl(StepIx(found as u32)), 3))
    }

    /// Whether the scope of `step` is the site's own or encloses it.
    fn encloses(&self, step: usize, site: Site) -> bool {
        if self.graph.scopes.is_empty() {
            return true; // The shape is faulty and was reported: there are no scopes to compare.
        }
        let wanted = self.graph.steps[step].scope;
        let mut scope = site.step.map_or(super::ScopeIx::ROOT, |own| self.graph.steps[own].scope);
        loop {
            if scope == wanted {
                return true;
            }
            match self.graph.scope(scope).owner {
                Some(owner) => scope = self.graph.step(owner).scope,
                None => return false,
            }
        }
    }
}

struct Unbound {
    code: &'static str,
    message: String,
    hint: Option<String>,
}

fn unknown<const N: usize>(message: &str, name: &str, known: [&str; N]) -> Unbound {
    let hint = match nearest(name, known) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("known here: {}", known.join(", ")),
    };
    Unbound { code: "unknown-name", message: message.to_string(), hint: Some(hint) }
}

fn misplaced(message: &str, hint: &str) -> Unbound {
    Unbound { code: "misplaced-name", message: message.to_string(), hint: Some(hint.to_string()) }
}
