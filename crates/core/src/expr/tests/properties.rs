//! No source and no data makes the parser or the evaluator panic, and the two ways to evaluate agree.

use super::*;

fn soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a",
        "b",
        "a.b",
        "a[0]",
        "b['a']",
        "result",
        "result.a",
        "word",
        "1",
        "-2.5",
        "9007199254740993",
        "'x'",
        "\"\"",
        "true",
        "nil",
        "null",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "!",
        "??",
        "(",
        ")",
        "(",
        ")",
        ",",
        "len(",
        "contains(",
        "lower(",
        "trim(",
        "exists(",
        "string(",
        "number(",
        "json(",
        "join(",
        "min(",
        "max(",
        "keys(",
        "first(",
        "last(",
        "+",
        "-",
        "-",
        "*",
        "/",
        "%",
        "split(",
        "slice(",
        "sort(",
        "sum(",
        "merge(",
        "date(",
        "round(",
    ]);
    prop::collection::vec(token, 1..12).prop_map(|tokens| tokens.join(" "))
}

/// Mostly well-formed, so that evaluation is reached.
fn formed() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "a.b",
        "a.a.b",
        "a[0]",
        "b[1].a",
        "b['a']",
        "result",
        "1",
        "0",
        "-2.5",
        "18446744073709551615",
        "'x'",
        "''",
        "'12'",
        "true",
        "null",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
        let binary =
            prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">=", "&&", "||", "??", "+", "-", "*", "/", "%"]);
        let unary = prop::sample::select(functions::NAMES.to_vec());
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (unary, inner.clone(), inner.clone()).prop_map(|(name, a, b)| {
                match Function::named(name).unwrap().arity() {
                    (1, 1) => format!("{name}({a})"),
                    (3, _) => format!("{name}({a}, {b}, {a})"),
                    (_, 4) => format!("{name}({a}, {b}, null, 'Europe/Berlin')"),
                    _ => format!("{name}({a}, {b})"),
                }
            }),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.prop_map(|a| format!("-({a})")),
        ]
    })
}

pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["", "x", "12", "nil", "{{secrets.A}}", "é", "1d", "2026-03-29T01:30:00Z"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]), inner), 0..4)
                .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn grammar() -> impl Strategy<Value = Grammar> {
    prop::sample::select(vec![Grammar::Standard, Grammar::Flow])
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(source in "\\PC{0,80}|.{0,40}", grammar in grammar()) {
        if let Err(error) = Expr::parse(&source, grammar) {
            prop_assert!(source.get(error.at.range()).is_some(), "{:?} in {:?}", error, source);
        }
    }

    #[test]
    fn a_printed_expression_parses_back_to_itself(source in prop_oneof![soup(), formed()], grammar in grammar()) {
        match Expr::parse(&source, grammar) {
            Ok(expr) => {
                let printed = shape(&expr);
                prop_assert_eq!(Expr::parse(&printed, grammar).map(|again| shape(&again)), Ok(printed));
            }
            Err(error) => prop_assert!(source.get(error.at.range()).is_some(), "{:?} in {:?}", error, source),
        }
    }

    #[test]
    fn every_evaluation_ends_and_templates_agree_with_conditions(
        source in prop_oneof![soup(), formed()],
        (a, b, result) in (any_json(), any_json(), any_json()),
        grammar in grammar(),
    ) {
        if let Ok(expr) = Expr::parse(&source, grammar) {
            let data = Data(json!({"a": a, "b": b, "result": result}));
            let read = expr.read(&data).unwrap();
            if let Ok(value) = expr.value(&data) {
                prop_assert_eq!(value, read.clone(), "{}", source);
            }
            prop_assert_eq!(expr.holds(&data), Ok(read.is_true()));
        }
    }

    #[test]
    fn order_and_equality_never_contradict_each_other(a in any_json(), b in any_json()) {
        let data = Data(json!({"a": a, "b": b}));
        let holds = |source| Expr::parse(source, Grammar::Standard).unwrap().holds(&data).unwrap();
        prop_assert!(holds("a == a && b == b"));
        prop_assert_eq!(holds("a == b"), !holds("a != b"));
        prop_assert_eq!(holds("a == b"), holds("b == a"));
        prop_assert_eq!(holds("a < b"), holds("b > a"));
        prop_assert_eq!(holds("a <= b"), holds("a < b") || (holds("a <= a") && holds("a == b")));
        prop_assert!(!(holds("a < b") && holds("a >= b")));
    }
}
