//! Encodes the body of a request: text, JSON, or a form. Messages never show a value, because it may be a secret.

use super::request::bad;
use crate::text::type_of;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value;
use stepwell_core::event::Failure;
use url::form_urlencoded::Serializer;

const FORM: &str = "application/x-www-form-urlencoded";

/// Text is sent unchanged, an object as a form if the headers declare one, any other value as JSON. Null means no body.
pub fn encode(given: Option<&Value>, headers: &mut HeaderMap) -> Result<Option<Vec<u8>>, Failure> {
    let (bytes, content_type) = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
        Some(fields @ Value::Object(_)) if is_form(headers) => return form(fields, "body", headers).map(Some),
        Some(other) => (other.to_string().into_bytes(), "application/json"),
    };
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    Ok(Some(bytes))
}

/// Encodes an object as a form. A list repeats its name, and a null is left out. `name` is the field's name.
pub fn form(given: &Value, name: &str, headers: &mut HeaderMap) -> Result<Vec<u8>, Failure> {
    let Value::Object(fields) = given else {
        return Err(bad(format!("`{name}` must be an object, but it is {}", type_of(given))));
    };
    let mut form = Serializer::new(String::new());
    for (key, value) in fields {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => drop(form.append_pair(key, text)),
                Value::Bool(_) | Value::Number(_) => drop(form.append_pair(key, &value.to_string())),
                Value::Array(_) | Value::Object(_) => {
                    let what = type_of(value);
                    return Err(bad(format!("a field of a form must be text or a list of texts, but one is {what}")));
                }
            }
        }
    }
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
    }
    Ok(form.finish().into_bytes())
}

fn is_form(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Outgoing;
    use serde_json::json;

    fn check(mut input: Value, sent: Option<&str>, content_type: Option<&str>) {
        input["url"] = "http://x".into();
        let outgoing = Outgoing::from_input(&input, "key").unwrap_or_else(|failure| panic!("{input}: {failure:?}"));
        assert_eq!(outgoing.body.as_deref(), sent.map(str::as_bytes), "{input}");
        let given = outgoing.headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap());
        assert_eq!(given, content_type, "{input}");
    }

    fn refused(mut input: Value, expected: &str) {
        input["url"] = "http://x".into();
        let Err(failure) = Outgoing::from_input(&input, "key") else { panic!("{input} was accepted") };
        assert!(failure.message.contains(expected), "{input}: {}", failure.message);
    }

    #[test]
    fn the_content_type_follows_the_body_unless_the_headers_set_it() {
        let check = |body: Value, headers: Value, sent: Option<&str>, content_type: Option<&str>| {
            check(json!({"headers": headers, "body": body}), sent, content_type);
        };
        check(json!({"a": 1}), json!({}), Some(r#"{"a":1}"#), Some("application/json"));
        check(json!([1, "x"]), json!({}), Some(r#"[1,"x"]"#), Some("application/json"));
        check(json!(true), json!({}), Some("true"), Some("application/json"));
        check(json!("a=1"), json!({}), Some("a=1"), Some("text/plain; charset=utf-8"));
        check(json!("a=1"), json!({"CONTENT-type": "x/y"}), Some("a=1"), Some("x/y"));
        check(json!({"a": 1}), json!({"content-type": "x/y"}), Some(r#"{"a":1}"#), Some("x/y"));
        check(json!(null), json!({}), None, None);
    }

    #[test]
    fn an_object_is_sent_as_a_form_if_its_type_or_its_field_says_so() {
        let fields = json!({"a b": "x&y=1", "n": 7, "yes": true, "tag": ["é", "2"], "none": null, "empty": []});
        let sent = "a+b=x%26y%3D1&n=7&yes=true&tag=%C3%A9&tag=2";
        for kind in [FORM, "Application/X-WWW-Form-Urlencoded; charset=utf-8"] {
            check(json!({"headers": {"Content-Type": kind}, "body": fields}), Some(sent), Some(kind));
        }
        check(json!({"form": fields}), Some(sent), Some(FORM));
        check(json!({"form": fields, "body": null}), Some(sent), Some(FORM));
        check(json!({"form": {}}), Some(""), Some(FORM));
        // Text is already encoded, and a list has no names.
        check(json!({"headers": {"content-type": FORM}, "body": "a=1"}), Some("a=1"), Some(FORM));
        check(json!({"headers": {"content-type": FORM}, "body": [1]}), Some("[1]"), Some(FORM));
    }

    #[test]
    fn a_form_that_cannot_be_encoded_is_refused() {
        refused(json!({"form": {"a": {"b": "s3cret"}}}), "must be text or a list of texts, but one is an object");
        refused(json!({"headers": {"content-type": FORM}, "body": {"a": [[1]]}}), "but one is a list");
        refused(json!({"form": "a=1"}), "`form` must be an object, but it is text");
        refused(json!({"form": {}, "body": {}}), "not both");
    }
}
