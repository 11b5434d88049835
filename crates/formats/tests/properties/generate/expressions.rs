//! Random expressions: arithmetic, functions, times and vars. Those of [`number`] and [`condition`] always have a value,
//! as long as the names they get have one.

use super::Rng;
use serde_json::{Map, Value, json};

/// The vars of a definition. They depend on nothing but the input, and one in twenty cannot be computed.
pub fn vars(rng: &mut Rng) -> Value {
    let mut vars = Map::new();
    for n in 0..1 + rng.below(3) {
        let mut names = vec!["input.n".to_string()];
        names.extend((0..n).map(|before| format!("vars.v{before}")));
        vars.insert(format!("v{n}"), json!(format!("{{{{{}}}}}", number(rng, &names, 2))));
    }
    let list = ["{{sort(input.items)}}", "{{unique(input.items)}}", "{{slice(input.items, 0, 2)}}"];
    vars.insert("list".into(), json!(rng.pick(&list)));
    if rng.chance(40) {
        vars.insert("day".into(), json!("{{date(now, '3d', '%Y-%m-%d')}}"));
    }
    if rng.chance(5) {
        vars.insert(
            "broken".into(),
            json!(rng.pick(&["{{input.n / (input.n - input.n)}}", "{{trigger.body.gone + 1}}"])),
        );
    }
    vars.into()
}

/// What a definition sets for all its calls.
pub fn defaults(rng: &mut Rng) -> Value {
    let mut defaults = json!({"timeout": "20s"});
    let name = if rng.chance(50) { "retries" } else { "maxAttempts" };
    if rng.chance(80) {
        defaults[name] = json!(1 + rng.below(3));
    }
    if rng.chance(30) {
        defaults["headers"] = json!({"x-number": format!("{{{{{}}}}}", number(rng, &["input.n".into()], 1))});
    }
    defaults
}

/// A calculation with these names.
pub fn number(rng: &mut Rng, names: &[String], depth: usize) -> String {
    if depth == 0 || rng.chance(20) {
        let literals = ["0.1", "2", "3", "-4", "0.25", "10"];
        return if rng.chance(70) { rng.pick(names).clone() } else { rng.pick(&literals).to_string() };
    }
    let mut part = || number(rng, names, depth - 1);
    let (a, b) = (part(), part());
    match rng.below(18) {
        0 | 1 => format!("{a} + {b}"),
        2 | 3 => format!("{a} - {b}"),
        4 => format!("({a}) * 1.5"),
        5 => format!("({a} - {b}) * 2"),
        6 => format!("({a}) / 4"),
        7 => format!("({a}) % 3"),
        8 => format!("-({a})"),
        9 => format!("round(({a}) / 8, 2)"),
        10 => format!("max({a}, {b})"),
        11 => "sum(input.items)".to_string(),
        12 => format!("len(input.items) + {a}"),
        13 => format!("floor({a}) + ceil({b})"),
        14 => format!("abs({a})"),
        15 => format!("min({a}, {b})"),
        16 => "number(trim(' 1.5 '))".to_string(),
        _ => format!("input.nope ?? {b}"),
    }
}

/// Text that always has a value; `now` in it is that of the moment.
pub fn text(rng: &mut Rng, names: &[String]) -> String {
    let number = number(rng, names, 1);
    match rng.below(15) {
        0 => "now".to_string(),
        1 => "date(now, '14d', '%Y-%m-%d')".to_string(),
        2 => format!("upper('n') ?? {number}"),
        3 => "join(sort(input.items), '-')".to_string(),
        4 => format!("base64({number})"),
        5 => format!("replace(string({number}), '.', ',')"),
        6 => "split('a,b,c', ',')".to_string(),
        7 => "slice('abcdef', -3, 5)".to_string(),
        8 => "keys(merge(input, input))".to_string(),
        9 => format!("sha256({number})"),
        10 => "date(now, '-36h', '%H:%M', 'Etc/GMT-9')".to_string(),
        11 => "date(now, '90m', null, 'Etc/GMT-9')".to_string(),
        12 => format!("urlencode(lower('A/') ?? {number})"),
        13 => "last(unique(split('b,a,b', ',')))".to_string(),
        _ => "json(values(input))".to_string(),
    }
}

/// A comparison that always has a value and does not depend on when it is made.
pub fn condition(rng: &mut Rng, names: &[String]) -> String {
    let sign = *rng.pick(&["==", "!=", "<", "<=", ">", ">="]);
    match rng.below(10) {
        0 => "now > '2026-01-01'".to_string(),
        1 => format!("contains(input.items, {})", number(rng, names, 1)),
        2 => format!("first(sort(input.items)) {sign} {}", number(rng, names, 1)),
        4 => format!("starts_with(string({}), '1')", number(rng, names, 1)),
        5 => format!("exists(input.nope) || ends_with(json({}), '5')", number(rng, names, 1)),
        3 => format!("input.n / (input.n - input.n) {sign} 1"),
        _ => format!("{} {sign} {}", number(rng, names, 2), number(rng, names, 1)),
    }
}
