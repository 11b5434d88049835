//! Random expressions, also of wrong types: the language and the reference agree about the value, in a template and in
//! a condition. The random runs mostly use expressions that have a value; these mostly try those that have none.

use super::generate::Rng;
use super::reference::expr::{Mode, evaluate};
use super::{DEFAULT_CASES, setting};
use serde_json::{Value, json};
use stepwell_core::expr::{Expr, Found, Grammar, Names, Path, walk};

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
            "text": rng.pick(&["", "x", "Grüße", "a-b-c", "2026-12-30"]), "list": list, "words": ["b", "a", "b"],
            "rows": [{"n": 2, "s": "x"}, {"n": 1, "s": "y"}], "empty": [],
        },
    })
}

/// Any expression, most of which make sense.
fn any(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 || rng.chance(15) {
        let leaves = [
            "input.a",
            "input.b",
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
        return rng.pick(&leaves).to_string();
    }
    let (a, b, c) = (any(rng, depth - 1), any(rng, depth - 1), any(rng, depth - 1));
    match rng.below(12) {
        0..3 => format!("({a} {} {b})", rng.pick(&["+", "-", "*", "/", "%"])),
        3 => format!("{a} {} {b}", rng.pick(&["+", "-", "*", "/", "%"])),
        4 => format!("({a} {} {b})", rng.pick(&["==", "!=", "<", "<=", ">", ">=", "&&", "||"])),
        5 => format!("({a} ?? {b})"),
        6 => format!("-({a})"),
        7 => format!("!({a})"),
        8 | 9 => {
            let names = [
                "len",
                "lower",
                "upper",
                "trim",
                "string",
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
                "urlencode",
                "exists",
                "round",
            ];
            format!("{}({a})", rng.pick(&names))
        }
        10 => match rng.below(4) {
            0 => format!("replace({a}, {b}, {c})"),
            1 => format!("slice({a}, {})", rng.pick(&["0", "1", "-2", "99", "1, 2", "-3, -1", "2, 1"])),
            2 => format!("sort({a}, {})", rng.pick(&["'n'", "'s'", "'gone'"])),
            _ => format!("date({a}, '{}d', '%Y-%m-%d')", rng.below(400)),
        },
        _ => {
            let names = ["contains", "join", "split", "merge", "min", "max"];
            format!("{}({a}, {b})", rng.pick(&names))
        }
    }
}

#[test]
fn a_random_expression_has_the_value_that_the_reference_gives_it() {
    let (first, cases) = (setting("STEPWELL_SEED", 1), 10 * setting("STEPWELL_CASES", DEFAULT_CASES));
    let (mut values, mut missing, mut refused) = (0u64, 0u64, 0u64);
    for seed in first..first + cases {
        let mut rng = Rng::new(seed);
        let depth = 1 + rng.below(2);
        let (source, data) = (any(&mut rng, depth), Data(data(&mut rng)));
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
        *(if template.is_some() { &mut values } else { &mut missing }) += 1;
    }
    println!("{cases} expressions: {values} values, {missing} without one, {refused} refused");
    assert!(values * 4 > cases && missing * 10 > cases, "{values} of {cases} have a value, {missing} have none");
}
