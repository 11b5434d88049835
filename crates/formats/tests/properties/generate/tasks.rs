//! Random definitions of the tasks dialect: `needs`, `if` and nested `for_each`.

use super::{Rng, expressions};
use serde_json::{Map, Value, json};

pub fn tasks(rng: &mut Rng, size: usize) -> Value {
    let mut maker = Maker { rng, count: 0 };
    maker.block(&Around { before: Vec::new(), depth: 0, may_break: true }, size)
}

/// A step that expressions may read.
#[derive(Clone)]
struct Known {
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Http,
    Tool,
    Sleep,
    Wait,
    Gate,
    Each,
    Child,
}

/// The context of a block of steps.
struct Around {
    /// Steps outside that come before the whole block.
    before: Vec<Known>,
    depth: usize,
    /// Whether templates may fail. Not where several items open at once and the first failure stops the rest, because
    /// which items are open by then is unspecified.
    may_break: bool,
}

struct Maker<'a> {
    rng: &'a mut Rng,
    count: usize,
}

impl Maker<'_> {
    fn block(&mut self, around: &Around, size: usize) -> Value {
        let mut block = Map::new();
        // The steps so far, each with the indexes of all that come before it.
        let mut made: Vec<(Known, Vec<usize>)> = Vec::new();
        let mut left = size;
        while left > 0 {
            left -= 1;
            let needs = self.needs(made.len());
            let mut before: Vec<usize> =
                needs.iter().flat_map(|need| made[*need].1.iter().chain([need])).copied().collect();
            before.sort_unstable();
            before.dedup();
            let mut readable: Vec<Known> = before.iter().map(|step| made[*step].0.clone()).collect();
            readable.extend(around.before.iter().cloned());

            let (kind, mut fields) = self.step(around, &readable, &mut left);
            if !needs.is_empty() {
                fields.insert("needs".into(), needs.iter().map(|need| json!(made[*need].0.name)).collect());
            }
            if self.rng.chance(if needs.is_empty() { 10 } else { 45 }) {
                fields.insert("if".into(), json!(self.condition(&readable, around.depth > 0)));
            }
            let name = format!("t{}", self.count);
            self.count += 1;
            block.insert(name.clone(), Value::Object(fields));
            made.push((Known { name, kind }, before));
        }
        Value::Object(block)
    }

    fn needs(&mut self, made: usize) -> Vec<usize> {
        if made == 0 || self.rng.chance(15) {
            return Vec::new();
        }
        let count = self.rng.weighted(&[(60, 1), (30, 2), (10, 3)]);
        // Mostly recent steps, so that chains grow.
        let near = made.min(4);
        let mut needs: Vec<usize> = (0..count).map(|_| made - 1 - self.rng.below(near)).collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    fn step(&mut self, around: &Around, readable: &[Known], left: &mut usize) -> (Kind, Map<String, Value>) {
        let each = if around.depth < 2 && *left > 0 { 14 } else { 0 };
        let kind = self.rng.weighted(&[
            (26, Kind::Http),
            (30, Kind::Tool),
            (7, Kind::Sleep),
            (8, Kind::Wait),
            (9, Kind::Gate),
            (6, Kind::Child),
            (each, Kind::Each),
        ]);
        let fields = match kind {
            Kind::Http => json!({"url": "https://example.com/do"}),
            Kind::Tool => json!({"tool": "echo"}),
            Kind::Sleep => json!({"sleep": if self.rng.chance(50) { json!("30s") } else { json!(5) }}),
            Kind::Wait if self.rng.chance(50) => json!({"wait_for_webhook": {"timeout": "1h"}}),
            Kind::Wait => json!({"wait_for_webhook": {}}),
            Kind::Gate => match self.rng.below(3) {
                0 => json!({"approval": {"message": "ok?"}}),
                1 => json!({"approval": {"message": "ok?", "timeout": "1h"}}),
                _ => json!({"approval": {"message": "ok?", "timeout": "1h", "on_timeout": "deny"}}),
            },
            Kind::Child => json!({"workflow": "child"}),
            Kind::Each => self.each(around, readable, left),
        };
        let Value::Object(mut fields) = fields else { unreachable!("all of them are objects") };
        if matches!(kind, Kind::Http | Kind::Tool) {
            if self.rng.chance(85) {
                fields.insert("retries".into(), json!(self.rng.below(4)));
            }
            if let Some(template) = self.template(readable, around) {
                fields.insert(if kind == Kind::Http { "body" } else { "args" }.into(), json!({"x": template}));
            }
        }
        if kind == Kind::Child && self.rng.chance(20) {
            fields.insert("retries".into(), json!(1));
        }
        (kind, fields)
    }

    fn each(&mut self, around: &Around, readable: &[Known], left: &mut usize) -> Value {
        let size = 1 + self.rng.below((*left).min(5));
        *left -= size;
        let width = *self.rng.pick(&[None, Some(1), Some(1), Some(2), Some(3)]);
        let stops = self.rng.chance(60);
        let may_break = around.may_break && (!stops || width == Some(1));
        let body = self.block(&Around { before: readable.to_vec(), depth: around.depth + 1, may_break }, size);
        let items = match self.rng.below(20) {
            0 | 1 => "{{input.empty}}",
            2 if around.may_break => "{{input.n}}",
            3..6 => "{{vars.list}}",
            _ => "{{input.items}}",
        };
        let mut each = json!({"for_each": items, "tasks": body});
        if let Some(width) = width {
            each["max_parallel"] = json!(width);
        }
        if !stops {
            each["on_item_error"] = json!("continue");
        } else if self.rng.chance(30) {
            each["on_item_error"] = json!("stop");
        }
        each
    }

    fn template(&mut self, readable: &[Known], around: &Around) -> Option<String> {
        let bodies: Vec<&Known> = readable.iter().filter(|known| has_body(known.kind)).collect();
        let name = if bodies.is_empty() { None } else { Some(self.rng.pick(&bodies).name.clone()) };
        let numbers = self.numbers(readable, around.depth > 0);
        match (self.rng.below(10), name) {
            (0 | 1, _) => Some("{{input.n}}".to_string()),
            (2, _) => Some("n is {{input.n}}".to_string()),
            (3, _) if around.depth > 0 => Some("{{item}}".to_string()),
            (4, Some(name)) => Some(format!("{{{{tasks.{name}.body.v ?? 0}}}}")),
            (5, Some(name)) if around.may_break => Some(format!("{{{{tasks.{name}.body.v}}}}")),
            (6, Some(name)) if around.may_break && self.rng.chance(40) => {
                Some(format!("{{{{tasks.{name}.body.nope}}}}"))
            }
            (6..=8, _) => Some(format!("{{{{{}}}}}", expressions::number(self.rng, &numbers, 3))),
            (9, _) => Some(format!("{{{{{}}}}}", expressions::text(self.rng, &numbers))),
            _ => None,
        }
    }

    /// Names that stand for numbers.
    fn numbers(&mut self, readable: &[Known], in_each: bool) -> Vec<String> {
        let mut names = vec!["input.n".to_string(), "vars.v0".to_string()];
        names.extend(in_each.then(|| "index".to_string()));
        let bodies = readable.iter().filter(|known| has_body(known.kind));
        names.extend(bodies.map(|known| format!("(tasks.{}.body.v ?? 0)", known.name)));
        names
    }

    fn condition(&mut self, readable: &[Known], in_each: bool) -> String {
        let first = self.atom(readable, in_each);
        match self.rng.below(8) {
            0 => format!("!({first})"),
            1 => format!("{first} && {}", self.atom(readable, in_each)),
            2 => format!("{first} || {}", self.atom(readable, in_each)),
            3 => format!("({first}) || !({})", self.atom(readable, in_each)),
            _ => first,
        }
    }

    fn atom(&mut self, readable: &[Known], in_each: bool) -> String {
        if self.rng.chance(20) {
            let numbers = self.numbers(readable, in_each);
            return expressions::condition(self.rng, &numbers);
        }
        if in_each && self.rng.chance(20) {
            return self.rng.pick(&["item > 1", "item == 1", "index == 0", "item <= 2"]).to_string();
        }
        if readable.is_empty() || self.rng.chance(5) {
            return self
                .rng
                .pick(&["input.flag == true", "input.n >= 2", "input.n != 1", "input.nope == null"])
                .to_string();
        }
        let known = self.rng.pick(readable).clone();
        let name = known.name;
        if has_body(known.kind) && self.rng.chance(40) {
            let value = self.rng.below(4);
            return match self.rng.below(5) {
                0 => format!("tasks.{name}.body.v == {value}"),
                1 => format!("tasks.{name}.body.v > {value}"),
                2 => format!("tasks.{name}.body.v <= {value}"),
                3 => format!("tasks.{name}.body == 'a'"),
                _ => format!("tasks.{name}.body != true"),
            };
        }
        let status = match known.kind {
            Kind::Wait => *self.rng.pick(&["received", "timeout", "skipped"]),
            Kind::Gate => *self.rng.pick(&["success", "denied", "skipped"]),
            _ => *self.rng.pick(&["success", "success", "failed", "failed", "timeout", "skipped", "template_error"]),
        };
        let sign = if self.rng.chance(60) { "==" } else { "!=" };
        format!("tasks.{name}.status {sign} '{status}'")
    }
}

fn has_body(kind: Kind) -> bool {
    matches!(kind, Kind::Http | Kind::Tool | Kind::Wait)
}
