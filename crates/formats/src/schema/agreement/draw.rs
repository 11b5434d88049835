//! Random documents: written field by field from the vocabulary, or taken from the test cases, and then damaged.

use crate::vocabulary::{Def, K, NODE, NODE_TYPES, Object, Only, STEP, Shape, WORKFLOW};
use serde_json::{Map, Value as Json, json};
use std::path::Path;

pub struct Draw {
    state: u64,
}

/// The documents of the golden tests and of the examples, as values.
pub fn corpus() -> Vec<Json> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/cases/good", "tests/cases/bad", "tests/cases/seeds", "../../examples"];
    let mut found = Vec::new();
    for folder in folders {
        let mut files: Vec<_> = std::fs::read_dir(root.join(folder)).expect("a folder").flatten().collect();
        files.sort_by_key(std::fs::DirEntry::path);
        for path in files.iter().map(std::fs::DirEntry::path) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            let text = std::fs::read(&path).expect("a readable file");
            // Test cases of workflows are no definitions.
            if (name.ends_with(".yaml") && !name.ends_with(".test.yaml")) || name.ends_with(".json") {
                found.extend(crate::document(&text, Some(&name)).ok().filter(Json::is_object));
            }
        }
    }
    assert!(found.len() > 80, "{} documents", found.len());
    found
}

const NAMES: [&str; 4] = ["a", "b", "start", "c"];

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// A document, valid or not.
    pub fn document(&mut self, corpus: &[Json]) -> Json {
        let mut document = match self.below(10) {
            0..=4 => self.pick(corpus).clone(),
            5 | 6 => self.tasks(),
            7 => self.flow(),
            _ => self.graph(),
        };
        if self.chance(70) {
            for _ in 0..=self.below(2) {
                self.damage(&mut document);
            }
        }
        document
    }

    fn root(&mut self) -> Map<String, Json> {
        let mut root = Map::new();
        root.insert("name".into(), "drawn".into());
        let steps = ["tasks", "flow", "nodes", "edges", "name", "title", "cron", "timezone", "at", "output"];
        for def in WORKFLOW.fields {
            if !steps.contains(&def.name) && self.chance(8) {
                root.insert(self.spelling(def).into(), self.value(&def.shape, def.example));
            }
        }
        root
    }

    fn spelling(&mut self, def: &Def) -> &'static str {
        let names: Vec<&'static str> = def.names().collect();
        names[self.below(names.len())]
    }

    fn tasks(&mut self) -> Json {
        let mut root = self.root();
        root.insert("tasks".into(), self.steps(Only::Tasks));
        Json::Object(root)
    }

    fn flow(&mut self) -> Json {
        let mut root = self.root();
        root.insert("flow".into(), self.steps(Only::Flow));
        Json::Object(root)
    }

    fn steps(&mut self, dialect: Only) -> Json {
        let mut steps = Map::new();
        if dialect == Only::Flow {
            steps.insert("start".into(), self.step(dialect));
        }
        for _ in 0..self.below(2) + usize::from(dialect == Only::Tasks) {
            let name = *self.pick(&NAMES);
            steps.insert(name.into(), self.step(dialect));
        }
        Json::Object(steps)
    }

    fn step(&mut self, dialect: Only) -> Json {
        let kinds = [
            ("url", K::Http),
            ("tool", K::Tool),
            ("javascript", K::Code),
            ("query", K::Query),
            ("condition", K::Condition),
            ("sleep", K::Sleep),
            ("until", K::Sleep),
            ("wait_for_webhook", K::Webhook),
            ("approval", K::Gate),
            ("for_each", K::Each),
            ("workflow", K::Child),
        ];
        let (deciding, kind) = *self.pick(&kinds);
        let types: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
        let mut step = Map::new();
        for def in STEP.fields.iter().filter(|def| def.is_on(kind) && def.only.is_none_or(|only| only == dialect)) {
            let decides = types.contains(&def.name);
            let needed = def.name == deciding || (kind == K::Each && def.name == "tasks");
            if needed || (!decides && self.chance(if def.kinds.is_empty() { 8 } else { 15 })) {
                let name = if needed { def.name } else { self.spelling(def) };
                let value = match def.name {
                    "tasks" => json!({"inner": {"tool": "echo"}}),
                    "needs" | "next" | "join" | "on_error" => (*self.pick(&NAMES)).into(),
                    "parallel" => json!([self.pick(&NAMES)]),
                    _ => self.value(&def.shape, def.example),
                };
                step.insert(name.into(), value);
            }
        }
        Json::Object(step)
    }

    fn graph(&mut self) -> Json {
        let mut root = self.root();
        let nodes: Vec<Json> = (0..=self.below(2)).map(|n| self.node(["a", "b", "c"][n])).collect();
        root.insert("nodes".into(), nodes.into());
        root.insert("edges".into(), json!([{"source": "a", "target": "b"}]));
        Json::Object(root)
    }

    fn node(&mut self, id: &str) -> Json {
        let kinds = [
            K::Start,
            K::End,
            K::Code,
            K::Query,
            K::Condition,
            K::Condition,
            K::Sleep,
            K::Each,
            K::Http,
            K::Tool,
            K::Gate,
            K::Webhook,
            K::Child,
        ];
        let at = self.below(NODE_TYPES.len());
        let (name, kind) = (NODE_TYPES[at], kinds[at]);
        let needed = ["code", "branches", "sourceVariable", "url", "tool", "workflow", "saved", "delaySeconds"];
        let mut own = Map::new();
        for def in NODE.fields.iter().filter(|def| !def.kinds.is_empty() && def.is_on(kind)) {
            if needed.contains(&def.name) || self.chance(10) {
                let name = if needed.contains(&def.name) { def.name } else { self.spelling(def) };
                let value = self.value(&def.shape, def.example);
                own.insert(name.into(), value);
            }
        }
        for (name, value) in
            [("outputVariable", json!("kept")), ("joinMode", json!("any")), ("isDisabled", true.into())]
        {
            if self.chance(4) {
                own.insert(name.into(), value);
            }
        }
        let (id_name, type_name) = (*self.pick(&["id", "nodeID"]), *self.pick(&["type", "nodeType"]));
        let mut node = json!({id_name: id, type_name: name, "position": {"x": 1}});
        match *self.pick(&["", "data", "nodeConfig", "config", "data.nodeConfig"]) {
            "" => node.as_object_mut().expect("an object").extend(own),
            "data.nodeConfig" => node["data"] = json!({"label": id, "nodeConfig": own}),
            place => node[place] = own.into(),
        }
        node
    }

    /// A value of this shape, mostly valid.
    fn value(&mut self, shape: &Shape, example: &str) -> Json {
        if let Ok(example) = serde_json::from_str::<Json>(example)
            && self.chance(50)
        {
            return example;
        }
        match shape {
            Shape::Any => self.scrap(),
            Shape::Text | Shape::Form(_) | Shape::Constant => json!(self.pick(&["a", "b c", "{{input.x}}", "x-1"])),
            Shape::Flag => self.chance(50).into(),
            Shape::True => true.into(),
            Shape::Number => self.below(9).into(),
            Shape::Size => "64MB".into(),
            Shape::Whole(least, most) => match self.below(4) {
                0 => most.to_string().into(),
                1 => (*most).into(),
                _ => (*least).into(),
            },
            Shape::Count(least, most) => (*if self.chance(50) { least } else { most }).into(),
            Shape::Length(_) | Shape::Positive(_) => {
                self.pick(&[json!("1h30m"), json!(5), json!("2 weeks"), json!("7"), json!(1.5), json!("30s")]).clone()
            }
            Shape::Choice(names) | Shape::AnyCase(names) => (*self.pick(names)).into(),
            Shape::Condition => "input.x > 1".into(),
            Shape::List(inner, _) => (0..=self.below(2)).map(|_| self.value(inner, "")).collect(),
            Shape::OneOrMore(inner, _) if self.chance(50) => self.value(inner, ""),
            Shape::OneOrMore(inner, _) => (0..=self.below(2)).map(|_| self.value(inner, "")).collect(),
            Shape::Map(map) => json!({"x": self.value(&map.value, "")}),
            Shape::Object(object) => self.object(object),
            Shape::Either(shapes) => {
                let shape = *self.pick(shapes);
                self.value(&shape, "")
            }
        }
    }

    fn object(&mut self, object: &Object) -> Json {
        let mut map = Map::new();
        for def in object.fields.iter().take(6) {
            if self.chance(40) {
                let name = self.spelling(def);
                let value = if self.below(4) == 0 { self.scrap() } else { self.value(&def.shape, def.example) };
                map.insert(name.into(), value);
            }
        }
        Json::Object(map)
    }

    /// Any small value.
    fn scrap(&mut self) -> Json {
        let scraps = json!([
            null, true, false, 0, 1, 3, 42, -1, 1.5, 100_000_000, "", "a", "start", "5s", "0s", "nope", "7", "-3",
            "{{input.x}}", "https://x.test", "cron", "at", [], ["a"], ["a", "b"], [1], {}, {"x": 1}, {"limit": 2},
            [null],
            {"header": "X-A"}, [{"id": "k", "if": "true"}], [{"then": "a"}], {"timeout": "5s"}, {"escalate_to": "x"}
        ]);
        let scraps = scraps.as_array().expect("a list");
        self.pick(scraps).clone()
    }

    /// A name that some object of some dialect has.
    fn known_name(&mut self) -> &'static Def {
        let object = *self.pick(&[&WORKFLOW, &STEP, &STEP, &NODE]);
        self.pick(object.fields)
    }

    /// Changes one thing in one object of the document.
    fn damage(&mut self, document: &mut Json) {
        let mut paths = Vec::new();
        objects(document, String::new(), &mut paths);
        let path = self.pick(&paths).clone();
        let scrap = self.scrap();
        let (def, kind) = (self.known_name(), self.below(6));
        let example = self.value(&def.shape, def.example);
        let (name, at) = (self.spelling(def), self.below(64));
        let Some(object) = document.pointer_mut(&path).and_then(Json::as_object_mut) else { return };
        let key = object.keys().nth(at % object.len().max(1)).cloned();
        match (kind, key) {
            (0, Some(key)) => drop(object.shift_remove(&key)),
            (1, Some(key)) => drop(object.insert(key, scrap)),
            (2, Some(key)) => {
                if let Some(value) = object.shift_remove(&key) {
                    object.insert(format!("{key}x"), value);
                }
            }
            (3, _) => drop(object.insert(name.into(), scrap)),
            _ => drop(object.insert(name.into(), example)),
        }
    }
}

/// The paths of all objects.
fn objects(value: &Json, path: String, found: &mut Vec<String>) {
    match value {
        Json::Object(map) => {
            for (key, inner) in map {
                objects(inner, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
            found.push(path);
        }
        Json::Array(items) => {
            for (n, inner) in items.iter().enumerate() {
                objects(inner, format!("{path}/{n}"), found);
            }
        }
        _ => {}
    }
}
