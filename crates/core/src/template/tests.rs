//! What templates resolve to, what they reject, and where secrets go.

use super::*;
use crate::expr::{Found, Names, Path, walk};
use proptest::prelude::*;
use serde_json::json;

struct Data(Value);

impl Names for Data {
    fn find<'a>(&'a self, path: &Path) -> Found<'a> {
        if path.begins_with("secrets") { Found::Secret } else { walk(&self.0, &path.segments).into() }
    }
}

fn data() -> Data {
    Data(json!({
        "n": 5,
        "none": null,
        "name": "Ann",
        "list": [1, {"a": 2}],
        "forged": "{{secrets.KEY}} {{n}}",
        "input": {"topic": "AI"},
    }))
}

fn template(value: &Value) -> Template {
    Template::parse(value, Mode::Standard).unwrap()
}

/// Checks what `value` resolves to, or the error message.
fn check(value: Value, expected: Value) {
    let resolved = template(&value).resolve(&data());
    assert_eq!(
        resolved.map_or_else(|missing| missing.to_string().into(), |r| Value::clone(&r.value)),
        expected,
        "{value}"
    );
}

/// One line per fault: pointer, the faulty part of the string, message.
fn check_refused(value: Value, expected: &[&str]) {
    let faults = Template::parse(&value, Mode::Standard).unwrap_err();
    let shown = |fault: &TemplateFault| {
        let text = value.pointer(&fault.pointer).and_then(Value::as_str).unwrap_or_default();
        format!("{} `{}`: {fault}", fault.pointer, text.get(fault.span.range()).unwrap_or("?"))
    };
    assert_eq!(faults.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[test]
fn a_lone_hole_keeps_the_type_and_inside_text_it_becomes_text() {
    check(json!("{{n}}"), json!(5));
    check(json!("{{ list }}"), json!([1, {"a": 2}]));
    check(json!("{{none}}"), json!(null));
    check(json!("{{n == 5}}"), json!(true));
    check(json!(" {{n}}"), json!(" 5"));
    check(json!("{{n}}{{n}}"), json!("55"));
    check(json!("Hi {{name}}, {{list}} [{{none}}]"), json!("Hi Ann, [1,{\"a\":2}] []"));
    check(json!({"a": ["{{name}}", {"b/c": "{{list[1].a}}!"}], "k": 1}), json!({"a": ["Ann", {"b/c": "2!"}], "k": 1}));
    check(json!("{{ upper(\"}}\") }}"), json!("}}"));
}

#[test]
fn a_missing_value_fails_unless_a_default_is_given() {
    check(json!({"a": "{{n}}", "b": "x {{order.id}}"}), json!("Failed to resolve {{order.id}}"));
    check(json!("{{order.id ?? 0}}"), json!(0));
    check(json!("<{{order.id ?? ''}}>"), json!("<>"));
    check(json!("{{lower(n)}}"), json!("`lower` needs a string, but got a number"));
}

#[test]
fn escaped_braces_are_text_and_data_is_never_read_as_a_template() {
    check(json!("\\{{n}} is {{n}}"), json!("{{n}} is 5"));
    check(json!(["\\{{n}}"]), json!(["{{n}}"]));
    check(json!("{{forged}}"), json!("{{secrets.KEY}} {{n}}"));
}

#[test]
fn all_faults_are_reported_with_their_position() {
    check_refused(
        json!({"url": "x {{a b}}", "list": [1, "{{ 'a }}", "{{}}"], "a/b": {"c": "{{ open"}, "{{k}}": 1}),
        &[
            "/url `b`: unexpected `b` after a complete value; an operator such as `==` or `&&` is missing before it",
            "/list/1 `'a `: the string is not closed; close it with the same kind of quote",
            "/list/2 ``: the expression is empty",
            "/a~1b/c `{{`: `{{` is not closed; close it with `}}`, or write `\\{{` for two literal braces",
            "/{{k}} `?`: a key cannot contain `{{`; keys are literal; build the object in a javascript step if a key must vary",
        ],
    );
}

#[test]
fn a_secret_must_stand_alone() {
    let misused =
        "a secret must stand alone in its braces, because its value is not known here; write {{secrets.NAME}}";
    for (source, blamed) in [
        ("{{upper(secrets.KEY)}}", "secrets.KEY"),
        ("{{secrets.KEY ?? ''}}", "secrets.KEY"),
        ("{{secrets}}", "secrets"),
        ("{{secrets.KEY.part}}", "secrets.KEY.part"),
        ("{{secrets[0]}}", "secrets[0]"),
    ] {
        check_refused(json!([source]), &[&format!("/0 `{blamed}`: {misused}")]);
    }
}

#[test]
fn secrets_go_only_where_the_template_has_them() {
    let value = json!({
        "Authorization": "Bearer {{secrets.KEY}}",
        "a/b": ["{{secrets.KEY}}", "é{{name}} {{ secrets.KEY }}:{{secrets[\"odd name\"]}} {{forged}}"],
        "forged": "{{forged}}",
        "escaped": "\\{{secrets.KEY}}",
    });
    let resolved = template(&value).resolve(&data()).unwrap();
    assert_eq!(
        *resolved.value,
        json!({
            "Authorization": "Bearer {{secrets.KEY}}",
            "a/b": ["{{secrets.KEY}}", "éAnn {{secrets.KEY}}:{{secrets[\"odd name\"]}} {{secrets.KEY}} {{n}}"],
            "forged": "{{secrets.KEY}} {{n}}",
            "escaped": "{{secrets.KEY}}",
        })
    );
    let secret = |name: &str| match name {
        "KEY" => Some("s3cret {{secrets.KEY}}".to_string()),
        "odd name" => Some(String::new()),
        _ => None,
    };
    assert_eq!(
        resolved.reveal(secret).unwrap(),
        json!({
            "Authorization": "Bearer s3cret {{secrets.KEY}}",
            "a/b": ["s3cret {{secrets.KEY}}", "éAnn s3cret {{secrets.KEY}}: {{secrets.KEY}} {{n}}"],
            "forged": "{{secrets.KEY}} {{n}}",
            "escaped": "{{secrets.KEY}}",
        })
    );
    assert_eq!(resolved.reveal(|_| None), Err("odd name".to_string()));
}

#[test]
fn a_slot_that_does_not_fit_its_value_is_an_error() {
    let resolved = template(&json!("{{secrets.KEY}}")).resolve(&data()).unwrap();
    let stored = serde_json::to_value(&resolved.secrets).unwrap();
    assert_eq!(stored, json!([{"pointer": "", "start": 0, "end": 15, "name": "KEY"}]));
    let secrets: Vec<SecretSlot> = serde_json::from_value(stored).unwrap();
    for other in [json!("é"), json!("{{secrets.OTH}}"), json!({"a": "{{secrets.KEY}}"}), json!(null)] {
        let moved = Resolved { value: Arc::new(other), secrets: secrets.clone() };
        assert_eq!(moved.reveal(|_| Some("s3cret".into())), Err("KEY".to_string()));
    }
}

#[test]
fn a_constant_is_one_shared_value() {
    let value = json!({"a": [1, "\\{{x}}", {"b": null}], "c": "plain"});
    let template = template(&value);
    assert!(template.is_constant());
    let [first, second] = [(); 2].map(|()| template.resolve(&data()).unwrap().value);
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(*first, json!({"a": [1, "{{x}}", {"b": null}], "c": "plain"}));
    assert_eq!(Template::constant(json!("{{n}}")).as_constant(), Some(&json!("{{n}}")));
    assert!(!super::tests::template(&json!(["{{1}}"])).is_constant());
}

#[test]
fn in_flow_an_unknown_input_key_is_an_empty_string() {
    let check = |value: Value, expected: Value| {
        let resolved = Template::parse(&value, Mode::Flow).unwrap().resolve(&data());
        assert_eq!(resolved.map_or_else(|missing| missing.to_string().into(), |r| Value::clone(&r.value)), expected);
    };
    check(json!({"q": "{{input.topic}}", "id": "{{input.doc_id}}"}), json!({"q": "AI", "id": ""}));
    check(json!("[{{input.doc_id}}]"), json!("[]"));
    check(json!("{{input.doc_id ?? 3}}"), json!(3));
    check(json!("{{steps.x}}"), json!("Failed to resolve {{steps.x}}"));
}

#[test]
fn in_a_condition_an_absent_operand_is_null() {
    let check = |value: Value, expected: Value| {
        let (template, data) = (template(&value), data());
        assert_eq!(template.read(&data).unwrap().to_json(), expected, "{value}");
    };
    check(json!("{{nothing}}"), json!(null));
    check(json!("{{n}}"), json!(5));
    check(json!("<{{nothing}}{{n}}>"), json!("<5>"));
    check(json!(7), json!(7));
    assert!(template(&json!("{{secrets.KEY}}")).read(&data()).is_err());
    assert!(template(&json!("a {{secrets.KEY}}")).read(&data()).is_err());
}

#[test]
fn depth_and_size_are_bounded_when_parsed_and_when_resolved() {
    let nested = |depth: usize, leaf: Value| (0..depth).fold(leaf, |inner, _| json!([inner]));
    assert!(Template::parse(&nested(MAX_DEPTH, json!("{{n}}")), Mode::Standard).is_ok());
    let faults = Template::parse(&nested(MAX_DEPTH + 1, json!(1)), Mode::Standard).unwrap_err();
    assert_eq!(faults[0].message, "the template is nested more than 64 deep");
    let faults = Template::parse(&Value::from(vec![0; MAX_NODES]), Mode::Standard).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message, "the template has more than 100000 values");
    let faults = Template::parse(&Value::from(vec!["{{"; 1_000]), Mode::Standard).unwrap_err();
    assert_eq!(faults.len(), MAX_FAULTS);

    let check = |template: Value, body: Value, expected: &str| {
        let missing = self::template(&template).resolve(&Data(json!({"body": body}))).unwrap_err();
        assert_eq!(missing.to_string(), expected);
    };
    check(nested(60, json!("{{body}}")), nested(61, json!(1)), "the result exceeds 120 levels of nesting");
    check(vec!["{{body}}"; 100].into(), "x".repeat(256 * 1024).into(), "the result exceeds 16 MB");
    check(vec!["{{body}}"; 100].into(), vec![0; 8 * 1024].into(), "the result exceeds 16 MB");
    check("{{body}}!".repeat(20).into(), "x".repeat(256 * 1024).into(), "the result exceeds 4 MB of text");
}

#[test]
fn a_hole_knows_its_position() {
    let mut template = template(&json!({"a/b": ["é {{n}} {{ name }}"]}));
    let shown: Vec<String> = template
        .holes()
        .iter()
        .map(|hole| format!("{} {} {:?}", hole.pointer, hole.offset, hole.expr.source()))
        .collect();
    assert_eq!(shown, ["/a~1b/0 5 \"n\"", "/a~1b/0 11 \" name \""]);
    assert_eq!(template.exprs_mut().flat_map(|expr| expr.paths_mut()).count(), 2);
    assert_eq!(template.exprs().count(), 2);
}

proptest! {
    #[test]
    fn any_value_can_be_written_as_a_template_of_itself(value in crate::expr::tests::any_json()) {
        fn escaped(value: &Value) -> Value {
            match value {
                Value::String(text) => text.replace("{{", "\\{{").into(),
                Value::Array(items) => items.iter().map(escaped).collect(),
                Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), escaped(value))).collect(),
                other => other.clone(),
            }
        }
        prop_assert_eq!(&*template(&escaped(&value)).resolve(&data()).unwrap().value, &value);
    }

    #[test]
    fn no_string_makes_it_panic(text in r#"([{}\\"'a. ]|\{\{|\}\}|n|secrets|input){0,16}|\PC{0,30}"#) {
        for mode in [Mode::Standard, Mode::Flow] {
            match Template::parse(&json!({"k": text}), mode) {
                Ok(template) => {
                    if let Ok(resolved) = template.resolve(&data()) {
                        prop_assert!(resolved.reveal(|_| Some("s3cret".into())).is_ok());
                    }
                }
                Err(faults) => {
                    for fault in faults {
                        prop_assert!(text.get(fault.span.range()).is_some(), "{:?}", fault);
                    }
                }
            }
        }
    }
}

/// What a URL resolves to, with `id` and `q` as data.
fn check_url(url: &str, id: Value, expected: &str) {
    let mut template = template(&json!({"url": url}));
    template.encode_url("url");
    let resolved = template.resolve(&Data(json!({"id": id, "base": "http://a.test/v1"})));
    let found = resolved.map_or_else(|missing| missing.to_string(), |r| r.value["url"].as_str().unwrap().to_string());
    assert_eq!(found, expected, "{url} {id}");
}

#[test]
fn a_value_in_the_path_or_query_of_a_url_is_percent_encoded() {
    check_url("http://a.test/{{id}}/b", json!("x/../y"), "http://a.test/x%2F..%2Fy/b");
    check_url("http://a.test/{{id}}", json!("q?z=1#f"), "http://a.test/q%3Fz%3D1%23f");
    check_url("http://a.test?q={{id}}", json!("a&b=c d+é"), "http://a.test?q=a%26b%3Dc%20d%2B%C3%A9");
    check_url("http://a.test/{{id}}", json!("%2e%2e"), "http://a.test/%252e%252e");
    check_url("http://a.test/{{id}}", json!([1, "a"]), "http://a.test/%5B1%2C%22a%22%5D");
    check_url("http://a.test/{{id}}", json!(7), "http://a.test/7");
    check_url("{{base}}/{{id}}", json!("a/b"), "http://a.test/v1/a%2Fb");
    check_url("http://{{id}}/x", json!("b.test:80"), "http://b.test:80/x");
}

#[test]
fn a_url_that_is_one_hole_and_raw_values_stay_whole_and_nothing_is_encoded_twice() {
    check_url("{{id}}", json!("http://a.test/x/y?z=1"), "http://a.test/x/y?z=1");
    check_url("http://a.test/{{raw(id)}}", json!("x/../y?z"), "http://a.test/x/../y?z");
    check_url("http://a.test/{{urlencode(id)}}", json!("x/y"), "http://a.test/x%2Fy");
    check_url(
        "http://a.test/{{secrets.KEY}}?k={{secrets.KEY}}",
        json!(0),
        "http://a.test/{{secrets.KEY}}?k={{secrets.KEY}}",
    );
}

#[test]
fn a_value_in_the_host_of_a_url_cannot_lead_to_another_host_or_path() {
    check_url("http://{{id}}.a.test/x", json!("eu"), "http://eu.a.test/x");
    check_url("http://{{id}}", json!("[::1]:80"), "http://[::1]:80");
    check_url("http://{{raw(id)}}/x", json!("b.test/v1"), "http://b.test/v1/x");
    check_url("{{base}}/x", json!(0), "http://a.test/v1/x");
    for (id, found) in
        [("evil.test/", "/"), ("evil.test?", "?"), ("evil.test#", "#"), ("a@evil.test", "@"), ("evil.test\\", "\\\\")]
    {
        let message = format!(
            "{{{{id}}}} puts '{found}' into the host of the URL, which leads elsewhere; write {{{{raw(…)}}}} to allow it"
        );
        check_url("http://{{id}}.a.test/x", json!(id), &message);
        check_url("http://user:{{id}}@a.test/x", json!(id), &message);
    }
}

#[test]
fn a_value_cannot_climb_in_the_path_of_a_url() {
    let climbs = |source: &str, segment: &str| {
        format!(
            "{{{{{source}}}}} makes a segment of the URL `{segment}`, which leads to another path; write {{{{raw(…)}}}} to allow it"
        )
    };
    check_url("http://a.test/v1/{{id}}/x", json!(".."), &climbs("id", ".."));
    check_url("http://a.test/v1/{{id}}", json!("."), &climbs("id", "."));
    check_url("http://a.test/v1/{{id}}{{id}}?x", json!("."), &climbs("id", ".."));
    check_url("http://a.test/v1/%2e{{id}}", json!("."), &climbs("id", ".."));
    check_url("http://a.test/v1/{{urlencode(id)}}#x", json!(".."), &climbs("urlencode(id)", ".."));
    check_url("http://a.test/v1/{{id}}", json!("..."), "http://a.test/v1/...");
    check_url("http://a.test/v1?p=/{{id}}", json!(".."), "http://a.test/v1?p=/..");
}

#[test]
fn raw_is_only_around_a_whole_expression() {
    check_refused(
        json!("{{raw(n) ?? 1}}"),
        &[" `raw(n)`: `raw` must be around the whole expression; write raw(a ?? b)"],
    );
}
