//! The whole language: how sources parse, what they evaluate to, and that no source or data makes it panic.

mod arithmetic;
mod properties;
mod pure_functions;

pub(crate) use properties::any_json;

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Resolves unbound paths in one JSON value; `secrets` are secrets, and `tasks.big` has a truncated body.
struct Data(Value);

impl Names for Data {
    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        match (path.key(0), path.key(1)) {
            (Some("secrets"), _) => Found::Secret,
            (Some("tasks"), Some("big")) => {
                Found::Truncated { step: "big", field: Dotted(&path.segments[2..]).to_string() }
            }
            _ => walk(&self.0, &path.segments).into(),
        }
    }
}

fn data() -> Data {
    Data(json!({
        "tasks": {
            "charge": {"status": "success", "status_code": 200, "body": {"amount": 12.5, "ok": true, "note": null}},
            "payment-result": {"status": "skipped", "status_code": null, "body": null},
        },
        "list": [3, 1, 2.5],
        "names": ["Ann", "Bob"],
        "empty": [],
        "zero": 0,
        "text": " Grüße ",
        "id": 9007199254740993u64,
        "result": {"state": "needs-review"},
    }))
}

#[test]
fn a_decision_is_never_made_on_a_value_that_is_missing_or_of_another_type() {
    let check = |source: &str, expected: Result<bool, &str>| {
        let expr = Expr::parse(source, Grammar::Standard).unwrap();
        let data = data();
        let decided = expr.decides(&data).map_err(|missing| missing.to_string());
        assert_eq!(decided, expected.map_err(str::to_string), "{source}");
    };
    check("tasks.charge.body.amount <= 12.5", Ok(true));
    check("text == 12", Ok(false));
    check("zero && text > 5", Ok(false));
    check("text > 5", Err("`>` needs two numbers or two strings, but got a number"));
    check("!(5 < names)", Err("`<` needs two numbers or two strings, but got a list"));
    check("tasks.charge.body.note >= 5", Err("`>=` needs two numbers or two strings, but got null"));
    check("tasks.charge.body.amonut > 5", Err("Failed to resolve {{tasks.charge.body.amonut}}"));
    check("(tasks.charge.body.amonut ?? 0) > 5", Ok(false));
    check("lower(zero) == 'a'", Err("`lower` needs a string, but got a number"));
}

/// The tree as text with the fewest parentheses, for comparing.
fn shape(expr: &Expr) -> String {
    fn level(node: &Node) -> u8 {
        match node {
            Node::Any(_) => 1,
            Node::All(_) => 2,
            Node::Compare(..) | Node::SameText { .. } => 3,
            Node::Calculate { operation: Operation::Add | Operation::Subtract, .. } => 4,
            Node::Calculate { .. } => 5,
            Node::Default(_) => 6,
            Node::Not(_) | Node::Negate { .. } => 7,
            Node::Literal(_) | Node::Path(_) | Node::Call { .. } => 8,
        }
    }
    fn chain(expr: &Expr, list: List, above: u8, sign: &str) -> String {
        let operands: Vec<String> = expr.operands(list).iter().map(|ix| print(expr, *ix, above)).collect();
        operands.join(sign)
    }
    fn print(expr: &Expr, ix: NodeIx, above: u8) -> String {
        let node = expr.node(ix);
        let text = match node {
            Node::Literal(Literal::Null) => "null".into(),
            Node::Literal(Literal::Bool(bool)) => bool.to_string(),
            Node::Literal(Literal::Number(number, _)) => number.to_string(),
            Node::Literal(Literal::Text(text)) => Value::from(&**text).to_string(),
            Node::Path(path) => path.to_string(),
            Node::Not(of) => format!("!{}", print(expr, *of, 6)),
            // Without parentheses the sign would be a part of the number.
            Node::Negate { of, .. } if matches!(expr.node(*of), Node::Literal(Literal::Number(..))) => {
                format!("-({})", print(expr, *of, 0))
            }
            Node::Negate { of, .. } => format!("-{}", print(expr, *of, 6)),
            Node::Calculate { operation, left, right, .. } => {
                let own = level(node);
                format!("{} {} {}", print(expr, *left, own - 1), operation.sign(), print(expr, *right, own))
            }
            Node::Compare(comparison, left, right) => {
                let sign = match comparison {
                    Comparison::Equal => "==",
                    Comparison::NotEqual => "!=",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                };
                format!("{} {sign} {}", print(expr, *left, 3), print(expr, *right, 3))
            }
            Node::SameText { path, text, negated } => {
                let sign = if *negated { "!=" } else { "==" };
                let text = text.as_deref().map_or("nil".into(), |text| Value::from(text).to_string());
                format!("{} {sign} {text}", print(expr, *path, 3))
            }
            Node::Default(list) => chain(expr, *list, 6, " ?? "),
            Node::All(list) => chain(expr, *list, 2, " && "),
            Node::Any(list) => chain(expr, *list, 1, " || "),
            Node::Call { function, list, .. } => format!("{}({})", function.name(), chain(expr, *list, 0, ", ")),
        };
        if level(node) <= above { format!("({text})") } else { text }
    }
    print(expr, expr.root, 0)
}

fn check_shape(source: &str, expected: &str) {
    assert_eq!(shape(&Expr::parse(source, Grammar::Standard).unwrap()), expected, "{source}");
}

/// `expected` is the source with the faulty part between »«, then the message.
fn check_refused(grammar: Grammar, source: &str, expected: &str) {
    let error = Expr::parse(source, grammar).unwrap_err();
    let (start, end) = (error.at.start as usize, error.at.end as usize);
    let shown = format!("{}»{}«{}: {error}", &source[..start], &source[start..end], &source[end..]);
    assert_eq!(shown, expected);
}

/// Checks the value of `source` in a template and in a condition.
fn check(source: &str, in_template: &str, in_condition: Value) {
    let (data, expr) = (data(), Expr::parse(source, Grammar::Standard).unwrap());
    let value = expr.value(&data).map_or_else(|missing| missing.to_string(), |value| value.to_json().to_string());
    assert_eq!(value, in_template, "{source} in a template");
    assert_eq!(expr.read(&data).unwrap().to_json(), in_condition, "{source} in a condition");
}

/// Checks a value that is the same in both.
fn check_value(source: &str, expected: Value) {
    check(source, &expected.to_string(), expected);
}

fn check_holds(grammar: Grammar, source: &str, data: Value, expected: bool) {
    let expr = Expr::parse(source, grammar).unwrap();
    assert_eq!(expr.holds(&Data(data.clone())), Ok(expected), "{source} with {data}");
}

#[test]
fn operators_bind_as_documented() {
    check_shape("a || b && c", "a || b && c");
    check_shape("(a || b) && c", "(a || b) && c");
    check_shape("a && (b && c)", "a && (b && c)");
    check_shape("((a)) == (1)", "a == 1");
    check_shape("x ?? 0 > 3", "x ?? 0 > 3");
    check_shape("(x ?? 0) > 3", "x ?? 0 > 3");
    check_shape("x ?? (0 > 3)", "x ?? (0 > 3)");
    check_shape("!a == b", "!a == b");
    check_shape("!(a == b)", "!(a == b)");
    check_shape("!a ?? b", "!a ?? b");
    check_shape("!!a", "!!a");
    check_shape("a==!b&&c!=d", "a == !b && c != d");
    check_shape("len( a )==0", "len(a) == 0");
    check_shape("!a!=b", "!a != b");
}

#[test]
fn names_may_contain_hyphens_and_strings_take_either_quote() {
    check_shape("tasks.payment-result.body", "tasks.payment-result.body");
    check_shape("a-b", "a-b");
    check_shape("a >= -1", "a >= -1");
    check_shape("steps['odd name'][0].x", "steps[\"odd name\"][0].x");
    check_shape(r#"'it\'s' == "a\tb\u00e9\ud83d\ude00""#, r#""it's" == "a\tbé😀""#);
    check_shape("nil == null", "null == null");
    check_shape("body.true.null", "body.true.null");
    check_shape("größe == 1e3", "größe == 1000.0");
    check_shape("\n a\t==\n1 ", "a == 1");
}

#[test]
fn an_invalid_expression_is_rejected_with_a_hint() {
    let check = |source, expected| check_refused(Grammar::Standard, source, expected);
    check("", "»«: the expression is empty");
    check("  ", "  »«: the expression is empty");
    check("a = 1", "a »=« 1: `=` is not an operator; did you mean `==`?");
    check("a !== 1", "a »!==« 1: `!==` is not an operator; did you mean `!=`?");
    check("a <=> 1", "a »<=>« 1: `<=>` is not an operator");
    check("a & b", "a »&« b: `&` is not an operator; did you mean `&&`?");
    check("a and b", "a »and« b: unexpected `and` after a complete value; use `&&`");
    check("a OR b", "a »OR« b: unexpected `OR` after a complete value; use `||`");
    check("not a", "»not« a: `not` is not an operator; use `!`");
    check("not(a)", "»not«(a): `not` is not an operator; use `!`");
    check("a == b == c", "a == b »==« c: comparisons do not chain; join two of them with `&&`");
    check("lne(a)", "»lne«(a): unknown function `lne`; did you mean `len`?");
    check("list.len()", "»list.len«(): only a plain name can be called; write len(list), not list.len()");
    check("len()", "»len()«: `len` takes one argument, but got 0");
    check("len(a,)", "len(a,»)«: expected a value, found `)`");
    check("max(1,2,3,4,5,6,7,8,9)", "»max(1,2,3,4,5,6,7,8,9)«: `max` takes 1 to 8 arguments, but got 9");
    check("contains(a)", "»contains(a)«: `contains` takes 2 arguments, but got 1");
    check("len(a", "len»(«a: `(` is not closed");
    check("(a == 1", "»(«a == 1: `(` is not closed");
    check("a)", "a»)«: `)` has no matching `(`");
    check(
        "(a b)",
        "(a »b«): unexpected `b` after a complete value; an operator such as `==` or `&&` is missing before it",
    );
    check("a ==", "a ==»«: expected a value, but the expression ends here");
    check("&& a", "»&&« a: expected a value, found `&&`");
    check("a == 'b", "a == »'b«: the string is not closed; close it with the same kind of quote");
    check(r"'\x'", r"'»\x«': `\x` is not a valid escape; write a backslash as \\");
    check(r"'\ud800'", r"'»\ud800«': `\u` needs the four hexadecimal digits of a character");
    check(
        "a.",
        "a».«: expected a name after `.`, found the end; write a name with other characters as [\"like this\"]",
    );
    check("a[b]", "a»[«b]: expected a number or a quoted name after `[`; write [0] or [\"name\"]");
    check("a[-1]", "a»[«-1]: list positions start at 0 and cannot be negative; last(list) returns the last item");
    check("a[0", "a»[0«: `[` is not closed");
    check("a[99999999999]", "a[»99999999999«]: `99999999999` is not a position in a list");
    check("2fa", "»2fa«: `2fa` is neither a number nor a name; write \"2fa\" if it is a string");
    check("1e999", "»1e999«: `1e999` is too large for a number");
    check("{{a}} == 1", "»{«{a}} == 1: unexpected `{`; write names without braces or `$`");
    check("a | upper", "a »|« upper: `|` is not an operator; did you mean `||`? A function is called as upper(x)");
    check(
        "a?.b",
        "a»?.«b: `?.` is not an operator; a path that leads nowhere is already null; `??` provides a default",
    );
    check_refused(
        Grammar::Flow,
        "result == needs review",
        "result == needs »review«: unexpected `review` after a complete value; a string of several words needs quotes",
    );
}

#[test]
fn size_and_depth_are_bounded() {
    let check = |source: String, expected: Option<&str>| {
        let error = Expr::parse(&source, Grammar::Standard).err().map(|error| error.message);
        assert_eq!(error.as_deref(), expected, "{}…", &source[..40]);
    };
    let nested = |open: &str, close: &str, times| format!("{}a{}", open.repeat(times), close.repeat(times));
    check(nested("(", ")", MAX_DEPTH), None);
    check(nested("(", ")", MAX_DEPTH + 1), Some("the expression is nested more than 32 deep"));
    check(nested("(", ")", 2_000), Some("the expression is nested more than 32 deep"));
    check(nested("!", "", 4_000), Some("the expression is nested more than 32 deep"));
    check(nested("lower(", ")", 500), Some("the expression is nested more than 32 deep"));
    check(nested("len(!(", "))", MAX_DEPTH / 2), Some("the expression is nested more than 32 deep"));
    check("a && ".repeat(254) + "a", None);
    check("a && ".repeat(256) + "a", Some("the expression has more than 256 parts"));
    check("a".repeat(5_000), Some("the expression has 5000 bytes, but at most 4096 are allowed"));
}

#[test]
fn a_missing_path_is_an_error_in_a_template_and_null_in_a_condition() {
    check("tasks.charge.body.order_id", "Failed to resolve {{tasks.charge.body.order_id}}", json!(null));
    check("upper( a['b c'] )", "Failed to resolve {{a['b c']}}", json!(null));
    check("nothing == null", "Failed to resolve {{nothing}}", json!(true));
    check("!nothing", "Failed to resolve {{nothing}}", json!(true));
    check("zero && nothing", "false", json!(false));
    check("list || nothing", "true", json!(true));
    check_value("tasks.charge.body.note", json!(null));
    check_value("tasks.payment-result.status_code >= 400", json!(false));
}

#[test]
fn a_default_replaces_null_and_absent_values() {
    check_value("nothing ?? 1", json!(1));
    check_value("tasks.charge.body.note ?? 'none'", json!("none"));
    check_value("nothing ?? absent ?? zero ?? 1", json!(0));
    check_value("lower(nothing.at.all) ?? 'x'", json!("x"));
    check_value("number(text) ?? -1", json!(-1));
    check_value("nothing ?? 5 > 3", json!(true));
    check("nothing ?? absent", "Failed to resolve {{absent}}", json!(null));
}

#[test]
fn comparisons_are_by_value_and_only_like_types_are_ordered() {
    check_value("tasks.charge.status_code == 200.0", json!(true));
    check_value("tasks.charge.status_code == '200'", json!(false));
    check_value("tasks.charge.status_code != '200'", json!(true));
    check_value("id == 9007199254740992", json!(false));
    check_value("id > 9007199254740992.0", json!(true));
    check_value("'a' < 'b' && 'Z' < 'a' && 'ab' > 'a'", json!(true));
    check_value("'10' < 9 || '10' >= 9 || null < 1 || null >= null || false < true || list < list", json!(false));
    check_value("list == list && names != list", json!(true));
}

#[test]
fn only_null_false_zero_and_the_empty_string_are_falsy() {
    for source in ["null", "false", "''", "0", "0.0", "-0.0", "zero", "nothing", "tasks.payment-result.body"] {
        check_holds(Grammar::Standard, source, data().0, false);
    }
    for source in ["true", "' '", "'false'", "0.1", "-1", "empty", "list", "tasks"] {
        check_holds(Grammar::Standard, source, data().0, true);
    }
}

#[test]
fn functions_return_what_is_documented() {
    check_value("len(text)", json!(7));
    check_value("len(list) == 3 && len(tasks) == 2 && len(empty) == 0", json!(true));
    check_value("contains(text, 'rüß')", json!(true));
    check_value("contains(list, 1.0) && !contains(list, '1') && contains(tasks, 'charge')", json!(true));
    check_value("starts_with('abc', 'ab') && ends_with('abc', 'bc') && !starts_with('abc', 'b')", json!(true));
    check_value("upper(trim(text))", json!("GRÜSSE"));
    check_value("lower('ÄB')", json!("äb"));
    check_value("exists(zero) && !exists(nothing.at.all) && !exists(tasks.charge.body.note)", json!(true));
    check_value("string(12.50)", json!("12.5"));
    check_value("string(null)", json!(""));
    check_value("string(names)", json!(r#"["Ann","Bob"]"#));
    check_value("number(' 12 ')", json!(12));
    check_value("number(id)", json!(9007199254740993u64));
    check_value("json(text)", json!("\" Grüße \""));
    check_value("json(null)", json!("null"));
    check_value("join(names, ' & ')", json!("Ann & Bob"));
    check_value("join(list, '')", json!("312.5"));
    check_value("join(empty, ', ')", json!(""));
    check_value("min(list)", json!(1));
    check_value("max(list, 1) ?? max(2, 3.5, -1)", json!(3.5));
    check_value("keys(tasks.charge)", json!(["status", "status_code", "body"]));
    check_value("first(names)", json!("Ann"));
    check_value("last(keys(tasks))", json!("payment-result"));
}

#[test]
fn a_wrong_type_is_an_error_in_a_template_and_null_in_a_condition() {
    check("lower(list)", "`lower` needs a string, but got a list", json!(null));
    check("len(zero)", "`len` needs a string, list or object, but got a number", json!(null));
    check("len(tasks.charge.body.note)", "`len` needs a string, list or object, but got null", json!(null));
    check("contains('12', 1)", "`contains` needs a string, but got a number", json!(null));
    check("number(text)", "`number` needs a number, but got a string that is not a number", json!(null));
    check("number(true)", "`number` needs a number or a string, but got a boolean", json!(null));
    check("join(text, ',')", "`join` needs a list, but got a string", json!(null));
    check("max(1, '2')", "`max` needs numbers, but got a string", json!(null));
    check("min(empty)", "`min` needs a list with items, but got an empty list", json!(null));
    check("first(empty)", "`first` needs a list with items, but got an empty list", json!(null));
    check("last(tasks)", "`last` needs a list, but got an object", json!(null));
    check("keys(list)", "`keys` needs an object, but got a list", json!(null));
    check(
        "contains(nothing ?? 3, 'a') || true",
        "`contains` needs a string, list or object, but got a number",
        json!(true),
    );
}

#[test]
fn a_truncated_body_and_a_secret_fail_even_in_a_condition() {
    let check = |source: &str, expected: &str| {
        let (data, expr) = (data(), Expr::parse(source, Grammar::Standard).unwrap());
        assert_eq!(expr.value(&data).unwrap_err().to_string(), expected, "{source}");
        assert_eq!(expr.holds(&data).unwrap_err().to_string(), expected, "{source}");
    };
    let truncated = |field: &str| {
        format!("Cannot read '{field}' because the response from 'big' exceeded the 256KB limit and was truncated")
    };
    check("tasks.big.body.amount", &truncated("body.amount"));
    check("tasks.big.body.amount ?? 1", &truncated("body.amount"));
    check("exists(tasks.big.body[0]['a b'])", &truncated("body[0][\"a b\"]"));
    check("len(tasks.big.body) > 3", &truncated("body"));
    check("lower(secrets.KEY)", "`secrets.KEY` must stand alone in a template, as {{secrets.KEY}}");
}

#[test]
fn text_beyond_the_limit_is_rejected() {
    let source = format!("{}'\"'{}", "json(".repeat(31), ")".repeat(31));
    let expr = Expr::parse(&source, Grammar::Standard).unwrap();
    assert_eq!(expr.value(&data()), Err(Missing::TooLarge { limit: "4 MB of text" }));
    assert!(expr.read(&data()).unwrap().text().unwrap().len() <= MAX_TEXT);
}

#[test]
fn flow_compares_a_result_with_a_literal_as_text() {
    let check = |source: &str, result: Value, expected| {
        check_holds(Grammar::Flow, source, json!({"result": result, "input": {"word": "yes"}}), expected);
    };
    for yes in [json!(true), json!("true")] {
        check("result == true", yes.clone(), true);
        check("true == result", yes.clone(), true);
        check("result == \"true\"", yes.clone(), true);
        check("result != true", yes.clone(), false);
        check("result == false", yes, false);
    }
    for nil in [json!(null), json!(""), json!("nil")] {
        for literal in ["nil", "null", "''", "'nil'"] {
            check(&format!("result == {literal}"), nil.clone(), true);
            check(&format!("result != {literal}"), nil.clone(), false);
        }
        check("result == 'null'", nil, false);
    }
    check("result != nil", json!("x"), true);
    check("result != nil", json!(false), true);
    check("result != nil", json!(0), true);
    check("result.state == nil", json!({}), true);
    check("result == approved", json!("approved"), true);
    check("needs-review == result", json!("needs-review"), true);
    check("result == approved || result == maybe", json!("maybe"), true);
    check("result == input", json!("input"), true);
    check("result.state == open", json!({"state": "open"}), true);
    check("result == 200", json!(200), true);
    check("result == 200", json!("200"), true);
    check("result == '200'", json!(200), true);
    check("result == 1.50", json!("1.50"), true);
    check("result == 1.50", json!("1.5"), false);
    check("result == 1.0", json!(1), true);
    check("result == '[1,2]'", json!([1, 2]), true);
    check("result == input.word", json!("yes"), true);
    check("result > 3", json!(4), true);
    check("result > 3", json!("4"), false);
    check("input.word == 'yes' && result == ok", json!("ok"), true);
}

#[test]
fn flow_binds_paths_but_not_the_words_beside_a_result() {
    let check = |grammar, source: &str, expected: &[&str]| {
        let expr = Expr::parse(source, grammar).unwrap();
        assert_eq!(expr.paths().map(Path::to_string).collect::<Vec<_>>(), expected, "{source}");
    };
    check(Grammar::Flow, "approved == result && input.a != word", &["result", "input.a", "word"]);
    check(Grammar::Flow, "(result) != (done)", &["result"]);
    check(Grammar::Standard, "result == done", &["result", "done"]);
}

#[test]
fn in_flow_templates_an_unknown_input_key_is_an_empty_string() {
    let check = |source: &str, expected: &str| {
        let (data, expr) = (Data(json!({"input": {"a": 1}})), Expr::parse(source, Grammar::Flow).unwrap());
        let value = expr.value(&data).map_or_else(|missing| missing.to_string(), |value| value.to_json().to_string());
        assert_eq!(value, expected, "{source}");
    };
    check("input.a", "1");
    check("input.b", "\"\"");
    check("upper(input.b)", "\"\"");
    check("input.b ?? 'x'", "\"x\"");
    check("exists(input.b)", "false");
    check("steps.b", "Failed to resolve {{steps.b}}");
}

#[test]
fn binding_reaches_every_path() {
    let mut expr = Expr::parse("tasks.a.body ?? len(ctx.b) == 1", Grammar::Standard).unwrap();
    for path in expr.paths_mut() {
        path.bind(Var::CtxAll, 1);
    }
    let rests: Vec<String> = expr.paths().map(|path| Dotted(path.rest()).to_string()).collect();
    assert_eq!(rests, ["a.body", "b"]);
    assert!(expr.paths().all(|path| path.var == Var::CtxAll));
    assert_eq!(expr.paths().map(|path| expr.text(path.span)).collect::<Vec<_>>(), ["tasks.a.body", "ctx.b"]);
}
