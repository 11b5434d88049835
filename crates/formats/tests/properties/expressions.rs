//! Random expressions, also of wrong types: the language and the reference agree about the value, in a template and in
//! a condition. The random runs mostly use expressions that have a value; these mostly try those that have none.

use super::generate::Rng;
use super::reference::expr::{Mode, evaluate};
use super::{DEFAULT_CASES, setting};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use stepwell_core::expr::{Expr, Found, Grammar, Names, Path, functions, walk};

/// Every function, with the kinds of its arguments.
const CALLS: [(&str, &[&str]); 38] = [
    ("len", &["any"]),
    ("contains", &["list", "any"]),
    ("contains", &["text", "text"]),
    ("starts_with", &["text", "text"]),
    ("ends_with", &["text", "text"]),
    ("lower", &["text"]),
    ("upper", &["text"]),
    ("trim", &["text"]),
    ("exists", &["any"]),
    ("string", &["any"]),
    ("number", &["text"]),
    ("json", &["any"]),
    ("join", &["list", "text"]),
    ("min", &["number", "number"]),
    ("max", &["numbers"]),
    ("keys", &["object"]),
    ("first", &["list"]),
    ("last", &["list"]),
    ("split", &["text", "separator"]),
    ("replace", &["text", "separator", "text"]),
    ("slice", &["text", "position"]),
    ("slice", &["list", "position", "position"]),
    ("sum", &["numbers"]),
    ("sort", &["numbers"]),
    ("sort", &["words"]),
    ("sort", &["rows", "field"]),
    ("unique", &["list"]),
    ("values", &["object"]),
    ("merge", &["object", "object"]),
    ("round", &["number", "digits"]),
    ("floor", &["number"]),
    ("ceil", &["number"]),
    ("abs", &["number"]),
    ("base64", &["any"]),
    ("sha256", &["any"]),
    ("urlencode", &["any"]),
    ("date", &["time", "add", "format"]),
    ("date", &["time", "add", "format", "zone"]),
];

/// What an argument of a kind may be.
fn leaves(kind: &str) -> &'static [&'static str] {
    match kind {
        "text" => &["input.text", "now", "'x'", "'Grüße'", "string(input.a)"],
        "number" => &["input.a", "input.b", "2.5", "-3", "1 / 3"],
        "numbers" => &["input.list", "slice(input.list, 1)"],
        "words" => &["input.words", "split(input.text, '-')"],
        "list" => &["input.list", "input.words", "input.rows", "input.empty"],
        "rows" => &["input.rows"],
        "object" => &["input", "first(input.rows)", "last(input.rows)"],
        "separator" => &["'-'", "'a'", "' '"],
        "position" => &["0", "1", "-2", "99", "-3"],
        "field" => &["'n'", "'s'", "'gone'"],
        "digits" => &["0", "1", "2", "5"],
        "time" => &["now", "'2026-12-30'", "1771754400000", "input.a"],
        "add" => &["null", "'400d'", "'-36h'", "'90m'", "'1d'"],
        "format" => &["null", "'%Y-%m-%d'", "'%H:%M'"],
        "zone" => &["null", "'Etc/GMT-9'"],
        _ => LEAVES,
    }
}

const LEAVES: &[&str] = &[
    "input.a",
    "input.b",
    "input.none",
    "input.flag",
    "input.text",
    "input.list",
    "input.words",
    "input.rows",
    "input.empty",
    "input.gone",
    "input",
    "now",
    "1",
    "0",
    "2.5",
    "-3",
    "'x'",
    "''",
    "true",
    "null",
];

/// A call whose arguments mostly fit.
fn call(rng: &mut Rng, depth: usize) -> String {
    let (name, kinds) = *rng.pick(&CALLS);
    let fixed = ["position", "field", "digits", "add", "format", "zone"];
    let mut argument = |kind: &str| match rng.chance(20) && !fixed.contains(&kind) && kind != "time" {
        true => any(rng, depth - 1),
        false => rng.pick(leaves(kind)).to_string(),
    };
    let arguments: Vec<String> = kinds.iter().map(|kind| argument(kind)).collect();
    format!("{name}({})", arguments.join(", "))
}

struct Data(Value);

impl Names for Data {
    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        walk(&self.0, &path.segments).into()
    }
}

fn data(rng: &mut Rng) -> Value {
    let numbers = [json!(0), json!(3), json!(-2), json!(0.1), json!(12.5), json!(1007)];
    let list: Vec<Value> = (0..rng.below(4)).map(|_| rng.pick(&numbers).clone()).collect();
    json!({
        "now": "2026-02-27T10:00:00.000Z",
        "input": {
            "a": rng.pick(&numbers), "b": rng.pick(&numbers), "none": null, "flag": rng.chance(50),
            "text": rng.pick(&["", "x", "Grüße", "a-b-c", "2026-12-30", " 1.50 ", "-7e2"]), "list": list, "words": ["b", "a", "b"],
            "rows": [{"n": 2, "s": "x"}, {"n": 1, "s": "y"}], "empty": [],
        },
    })
}

/// Any expression, most of which make sense.
fn any(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 || rng.chance(15) {
        // Numbers more often, so that most calculations have a value.
        let leaves = if rng.chance(15) { &LEAVES[..2] } else { LEAVES };
        return rng.pick(leaves).to_string();
    }
    let (a, b) = (any(rng, depth - 1), any(rng, depth - 1));
    match rng.below(16) {
        0..3 => format!("({a} {} {b})", rng.pick(&["+", "-", "*", "/", "%"])),
        3 => format!("{a} {} {b}", rng.pick(&["+", "-", "*", "/", "%"])),
        4 => format!("({a} {} {b})", rng.pick(&["==", "!=", "<", "<=", ">", ">=", "&&", "||"])),
        5 => format!("({a} ?? {b})"),
        6 => format!("-({a})"),
        7 => format!("!({a})"),
        // Arguments of any kind.
        8 => format!("{}({a})", rng.pick(&OF_ONE)),
        9 => format!("{}({a}, {b})", rng.pick(&OF_TWO)),
        _ => call(rng, depth),
    }
}

/// Functions that take one argument, or may.
const OF_ONE: [&str; 24] = [
    "len",
    "lower",
    "upper",
    "trim",
    "string",
    "number",
    "json",
    "first",
    "last",
    "keys",
    "values",
    "unique",
    "sum",
    "min",
    "max",
    "sort",
    "floor",
    "ceil",
    "abs",
    "base64",
    "sha256",
    "urlencode",
    "exists",
    "round",
];
const OF_TWO: [&str; 8] = ["contains", "starts_with", "ends_with", "join", "split", "merge", "min", "max"];

#[test]
fn a_random_expression_has_the_value_that_the_reference_gives_it() {
    let (first, cases) = (setting("STEPWELL_SEED", 1), 10 * setting("STEPWELL_CASES", DEFAULT_CASES));
    let (mut values, mut missing, mut refused) = (0u64, 0u64, 0u64);
    let mut calls: BTreeMap<&str, u64> = functions::NAMES.iter().map(|name| (*name, 0)).collect();
    for seed in first..first + cases {
        let mut rng = Rng::new(seed);
        let depth = 1 + rng.below(2);
        let (mut source, data) = (any(&mut rng, depth), Data(data(&mut rng)));
        // Allowed around a whole expression only.
        if rng.chance(5) {
            source = format!("raw({source})");
        }
        // What can never have a value is refused.
        let Ok(expr) = Expr::parse(&source, Grammar::Standard) else {
            refused += 1;
            continue;
        };
        let lookup = |path: &[String]| super::reference::expr::dig(&data.0, path);
        let shown = |value: Option<Value>| value.map(|value| value.to_string());
        let template = shown(expr.value(&data).ok().map(|value| value.to_json()));
        assert_eq!(template, shown(evaluate(&source, Mode::Template, &lookup)), "seed {seed}: {source}\n{}", data.0);
        let condition = shown(Some(expr.read(&data).expect("nothing is truncated").to_json()));
        assert_eq!(condition, shown(evaluate(&source, Mode::Condition, &lookup)), "seed {seed}: {source}\n{}", data.0);
        if template.is_some() {
            calls.iter_mut().filter(|(name, _)| source.contains(&format!("{name}("))).for_each(|(_, n)| *n += 1);
        }
        *(if template.is_some() { &mut values } else { &mut missing }) += 1;
    }
    println!("{cases} expressions: {values} values, {missing} without one, {refused} refused");
    assert!(values * 4 > cases && missing * 10 > cases, "{values} of {cases} have a value, {missing} have none");
    let rare: Vec<_> = calls.iter().filter(|(_, n)| **n * 400 < cases).collect();
    assert!(rare.is_empty(), "too few of {cases} expressions call these and have a value: {rare:?}");
}
