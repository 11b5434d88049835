//! Arithmetic: how it parses, that it is exact, and what is refused.

use super::*;

#[test]
fn arithmetic_binds_tighter_than_comparisons_and_looser_than_defaults() {
    check_shape("a + b * c", "a + b * c");
    check_shape("(a + b) * c", "(a + b) * c");
    check_shape("a - b - c", "a - b - c");
    check_shape("a - (b - c)", "a - (b - c)");
    check_shape("a / b % c", "a / b % c");
    check_shape("a+b*c", "a + b * c");
    check_shape("a + 1 > b && c", "a + 1 > b && c");
    check_shape("x ?? 0 + 1", "x ?? 0 + 1");
    check_shape("(x ?? 0) + 1", "x ?? 0 + 1");
    check_shape("x ?? (0 + 1)", "x ?? (0 + 1)");
    check_shape("-a * b", "-a * b");
    check_shape("-(a * b)", "-(a * b)");
    check_shape("- 1", "-(1)");
    check_shape("a - -1", "a - -1");
    check_shape("a - -b", "a - -b");
    check_shape("a-b", "a-b");
    check_shape("a-b - c", "a-b - c");
    check_shape("len(a) - 1", "len(a) - 1");
}

#[test]
fn numbers_that_were_exact_stay_exact() {
    check_value("0.1 + 0.2", json!(0.3));
    check_value("0.1 + 0.2 == 0.3", json!(true));
    check_value("id + 1", json!(9007199254740994u64));
    check_value("id - 9007199254740992", json!(1));
    check_value("tasks.charge.body.amount * 2", json!(25));
    check_value("-tasks.charge.body.amount", json!(-12.5));
    check_value("1 + 2 * 3 - 4 / 2", json!(5));
    check_value("10 % 4 + 7 / 2", json!(5.5));
    check_value("1 / 3 > 0.333", json!(true));
    check_value("nothing ?? 2 * 3", json!(6));
    check_value("sum(list) / len(list)", json!(6.5 / 3.0));
}

#[test]
fn what_is_not_a_number_is_an_error_in_a_template_and_null_in_a_condition() {
    check("text + 1", "{{text + 1}}: `+` needs numbers, but got a string", json!(null));
    check("2 * (list - 1)", "{{list - 1}}: `-` needs numbers, but got a list", json!(null));
    check("nothing + 1", "Failed to resolve {{nothing}}", json!(null));
    check("tasks.charge.body.note + 1", "{{tasks.charge.body.note + 1}}: `+` needs numbers, but got null", json!(null));
    check("1 / zero", "{{1 / zero}}: `/` needs a divisor other than 0, but got 0", json!(null));
    check("id % zero", "{{id % zero}}: `%` needs a divisor other than 0, but got 0", json!(null));
    check("-text", "{{-text}}: `-` needs numbers, but got a string", json!(null));
    check("1e308 * 10", "the result exceeds 1.8e308, the largest number", json!(null));
    check("1 / zero > 1", "{{1 / zero}}: `/` needs a divisor other than 0, but got 0", json!(false));
}

#[test]
fn a_calculation_that_can_never_work_is_refused() {
    let check = |source, expected| check_refused(Grammar::Standard, source, expected);
    check(
        "a -1",
        "a »-«1: `-` needs a space on each side to subtract; write a - b; without spaces, a hyphen is part of a name",
    );
    check(
        "(a)- 1",
        "(a)»-« 1: `-` needs a space on each side to subtract; write a - b; without spaces, a hyphen is part of a name",
    );
    check(
        "5-3",
        "»5-3«: `5-3` is neither a number nor a name; write `5 - 3` to subtract, or \"5-3\" if it is a string",
    );
    check(
        "'a' + b",
        "'a' »+« b: `+` needs numbers, but got a string; write text side by side in a template: {{a}}{{b}}",
    );
    check("b * '2'", "b »*« '2': `*` needs numbers, but got a string; number(x) reads a number from a string");
    check("a + (b == c)", "a »+« (b == c): `+` needs numbers, but got a boolean");
    check(
        "1 + lower(a)",
        "1 »+« lower(a): `+` needs numbers, but got a string; write text side by side in a template: {{a}}{{b}}",
    );
    check("-'a'", "»-«'a': `-` needs numbers, but got a string; number(x) reads a number from a string");
    check("a / 0", "a »/« 0: `/` needs a divisor other than 0, but got 0");
    check("a ** 2", "a »**« 2: `**` is not an operator; there are no powers; write x * x");
    check("a // 2", "a »//« 2: `//` is not an operator; write floor(x / y)");
    check("a +", "a +»«: expected a value, but the expression ends here");
    check("* a", "»*« a: expected a value, found `*`");
}

#[test]
fn in_a_flow_a_calculation_is_not_a_literal() {
    let check = |source, result: Value, expected| {
        check_holds(Grammar::Flow, source, json!({ "result": result }), expected);
    };
    check("result == -1", json!("-1"), true);
    check("result == 2 - 1", json!(1), true);
    check("result == 2 - 1", json!("1"), false);
    check("result - 1 > 3", json!(5), true);
}

#[test]
fn the_work_of_one_expression_is_bounded() {
    let text = "x".repeat(4 * 1024 * 1024);
    let source = format!("{}false", "contains(a, 'y') || ".repeat(80));
    let expr = Expr::parse(&source, Grammar::Standard).unwrap();
    let missing = expr.holds(&Data(json!({ "a": text }))).unwrap_err();
    assert_eq!(missing.to_string(), "the result exceeds 256 MB of work");
}
