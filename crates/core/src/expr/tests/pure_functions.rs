//! The functions of text, lists, numbers and times.

use super::*;

#[test]
fn text_is_split_cut_replaced_and_digested() {
    check_value("split('a,b,,c', ',')", json!(["a", "b", "", "c"]));
    check_value("split('abc', '-')", json!(["abc"]));
    check_value("replace('a-b-c', '-', '+')", json!("a+b+c"));
    check_value("slice('Grüße', 2)", json!("üße"));
    check_value("slice('Grüße', 1, -1)", json!("rüß"));
    check_value("slice('abc', -2)", json!("bc"));
    check_value("slice('abc', 5)", json!(""));
    check_value("slice('abc', 2, 1)", json!(""));
    check_value("base64('Grüße')", json!("R3LDvMOfZQ=="));
    check_value("sha256('abc')", json!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    check_value("sha256(1)", json!("6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"));
}

#[test]
fn lists_and_objects_are_cut_sorted_and_joined() {
    check_value("slice(list, 1)", json!([1, 2.5]));
    check_value("slice(list, -1)", json!([2.5]));
    check_value("slice(list, 0, 99)", json!([3, 1, 2.5]));
    check_value("sum(list)", json!(6.5));
    check_value("sum(empty)", json!(0));
    check_value("sort(list)", json!([1, 2.5, 3]));
    check_value("sort(split('b,a,C', ','))", json!(["C", "a", "b"]));
    check_value("sort(empty)", json!([]));
    check_value("unique(split('b,a,b', ','))", json!(["b", "a"]));
    check_value("len(unique(list)) == len(list)", json!(true));
    check_value("values(tasks.payment-result)", json!(["skipped", null, null]));
    check_value("values(merge(result, tasks.charge.body))", json!(["needs-review", 12.5, true, null]));
}

#[test]
fn later_objects_win_and_equal_items_are_found_in_any_notation() {
    let data = Data(json!({
        "a": {"x": 1, "y": 2}, "b": {"y": 3, "z": 4},
        "rows": [{"n": 2, "id": "b"}, {"n": 1, "id": "a"}, {"n": 2, "id": "c"}],
        "twice": [1, 1.0, {"p": 1, "q": 2}, {"q": 2.0, "p": 1}, "1", 1e300, 1e300],
    }));
    let check = |source: &str, expected: Value| {
        let expr = Expr::parse(source, Grammar::Standard).unwrap();
        assert_eq!(expr.value(&data).unwrap().to_json().to_string(), expected.to_string(), "{source}");
    };
    check("merge(a, b)", json!({"x": 1, "y": 3, "z": 4}));
    check("merge(b, a)", json!({"y": 2, "z": 4, "x": 1}));
    check("unique(twice)", json!([1, {"p": 1, "q": 2}, "1", 1e300]));
    check("sort(rows, 'n')", json!([{"n": 1, "id": "a"}, {"n": 2, "id": "b"}, {"n": 2, "id": "c"}]));
    check("first(sort(rows, 'id'))", json!({"n": 1, "id": "a"}));
}

#[test]
fn numbers_are_rounded() {
    check_value("round(2.345, 2)", json!(2.35));
    check_value("round(-2.5)", json!(-3));
    check_value("floor(2.9) + ceil(2.1) + abs(-1)", json!(6));
    check_value("abs(id)", json!(9007199254740993u64));
    check("round(1.5, zero - 1)", "`round` needs from 0 to 30 digits, but got another number", json!(null));
}

#[test]
fn times_are_moved_and_formatted_in_a_zone() {
    check_value("date('2026-02-22T10:00:00Z')", json!("2026-02-22T10:00:00.000Z"));
    check_value("date(1771754400000)", json!("2026-02-22T10:00:00.000Z"));
    check_value("date('2026-02-22T12:00:00+02:00', '1d')", json!("2026-02-23T10:00:00.000Z"));
    check_value("date('2026-01-31', '1mo')", json!("2026-02-28T00:00:00.000Z"));
    check_value("date('2026-02-22T10:00:00Z', '-90m')", json!("2026-02-22T08:30:00.000Z"));
    check_value("date('2026-02-22T10:00:00Z', null, '%d.%m.%Y')", json!("22.02.2026"));
    check_value("date('2026-07-01T10:00:00Z', null, null, 'Europe/Berlin')", json!("2026-07-01T12:00:00.000+02:00"));
    // A day is a calendar day: the clocks change in this night.
    check_value("date('2026-03-28T12:00:00', '1d', '%H:%M', 'Europe/Berlin')", json!("12:00"));
    check_value("date('2026-03-28T12:00:00', '24h', '%H:%M', 'Europe/Berlin')", json!("13:00"));
    check_value("date('2026-02-22', null, '%A') == 'Sunday'", json!(true));
    check_value("number(date('1970-01-02T00:00:00Z', null, '%s'))", json!(86400));
}

#[test]
fn a_wrong_argument_is_an_error_in_a_template_and_null_in_a_condition() {
    let time = "a time such as 2026-02-22T10:00:00Z, or milliseconds since 1970";
    check("date(text)", &format!("`date` needs {time}, but got something else"), json!(null));
    check("date(1.5)", &format!("`date` needs {time}, but got something else"), json!(null));
    check("date(list)", "`date` needs a time, but got a list", json!(null));
    check("date(0, text)", "`date` needs a duration such as '3d' or '-2h30m', but got another string", json!(null));
    check(
        "date(0, null, null, text)",
        "`date` needs a time zone such as 'Europe/Berlin', but got another string",
        json!(null),
    );
    check("date(0, '9999y')", "`date` needs a time in the years -9999 to 9999, but got one outside", json!(null));
    check("split(list, ',')", "`split` needs a string, but got a list", json!(null));
    check(
        "split(text, nothing ?? '')",
        "`split` needs a separator that is not empty, but got an empty string",
        json!(null),
    );
    check("sum(names)", "`sum` needs a list of numbers, but got a string", json!(null));
    check("sort(tasks.charge.body.note)", "`sort` needs a list, but got null", json!(null));
    check("sort(names, 'x')", "`sort` needs items that have the field, but got one without it", json!(null));
    check("merge(tasks, list)", "`merge` needs an object, but got a list", json!(null));
    check("slice(text, 0.5)", "`slice` needs whole positions, but got a number with a fraction", json!(null));
}

#[test]
fn a_call_that_can_never_work_is_refused() {
    let check = |source, expected| check_refused(Grammar::Standard, source, expected);
    check("split(a)", "»split(a)«: `split` takes 2 arguments, but got 1");
    check("split(a, 1)", "»split(a, 1)«: `split` needs a string, but got a number");
    check("sum('1')", "»sum('1')«: `sum` needs a list, but got a string");
    check(
        "date('soon')",
        "»date('soon')«: `date` needs a time such as 2026-02-22T10:00:00Z, or milliseconds since 1970",
    );
    check("round(a, 31)", "»round(a, 31)«: `round` needs from 0 to 30 digits");
    check("date(a, 'tomorrow')", "»date(a, 'tomorrow')«: `date` needs a duration such as '3d' or '-2h30m'");
    check("date(a, null, '%!')", "»date(a, null, '%!')«: `date` needs a format such as '%Y-%m-%d'");
    check(
        "date(a, null, null, 'Europe/Berlim')",
        "»date(a, null, null, 'Europe/Berlim')«: `date` needs a time zone such as 'Europe/Berlin'; \
         did you mean `Europe/Berlin`?",
    );
    check("replace(a, '', b)", "»replace(a, '', b)«: the second argument of `replace` must not be empty");
    check("length(a)", "»length«(a): unknown function `length`; did you mean `len`?");
    check("now()", "»now«(): unknown function `now`; `now` is a name: write now, without parentheses");
    check("splitt(a, b)", "»splitt«(a, b): unknown function `splitt`; did you mean `split`?");
}

#[test]
fn a_literal_that_an_older_function_cannot_take_is_no_fault_of_the_definition() {
    check("lower(5)", "`lower` needs a string, but got a number", json!(null));
    check("max('a')", "`max` needs numbers, but got a string", json!(null));
}
