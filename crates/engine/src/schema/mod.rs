//! JSON Schemas: compiles them and reports what is wrong with a value. Nothing is fetched, so a schema must be
//! self-contained.
//!
//! A schema from outside (a workflow's, a gate's, an MCP server's) is a [`Schema`]: bounded when it is read (`bounds`),
//! rewritten so that the validator can be stopped (`rewrite`), compiled once and applied on threads of its own (`pool`),
//! within a deadline and a stack (`guard`). The product's own schemas are [`OwnSchema`]s.

mod bounds;
mod guard;
mod pool;
mod rewrite;

pub use bounds::{MAX_BYTES, MAX_DEPTH, MAX_EXPANSION, MAX_PATTERNS, MAX_REFERENCES};
pub use guard::DEADLINE;

use crate::error;
use jsonschema::Validator;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use stepwell_formats::{Faults, code};

/// Memory of a compiled schema per byte of its JSON, without its patterns.
const MEMORY_PER_BYTE: usize = 20;

/// A schema from outside, within the bounds. Clones are the same one.
#[derive(Clone)]
pub struct Schema {
    source: Arc<Value>,
    digest: [u8; 32],
    /// Approximate memory once compiled.
    memory: usize,
}

/// Why a schema cannot be used, or a value cannot be checked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The schema exceeds a bound.
    #[error("{}{message}", place(path))]
    Bound { path: String, message: String },
    /// It is no valid schema.
    #[error("{}{message}", place(path))]
    Invalid { path: String, message: String },
    /// The value costs too much to check.
    #[error("{0}")]
    Costly(String),
    #[error("too many values are being checked against schemas: retry later")]
    Busy,
}

fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

impl Error {
    /// As an error of a definition or of an input, where `schema` and `value` name the two for the reader.
    pub fn at(self, schema: &str, value: &str) -> error::Error {
        let fault = |code, path: String, message| {
            let fault = stepwell_formats::Fault::of(code, format!("{schema}{path}"), message);
            error::Error::Definition(Faults::of(vec![fault], 0))
        };
        match self {
            Error::Bound { path, message } => fault(code::LIMIT_SCHEMA, path, message),
            Error::Invalid { path, message } => fault(code::BAD_SCHEMA, path, message),
            Error::Costly(message) => error::Error::Input { path: value.into(), message },
            Error::Busy => error::Error::Unavailable(self.to_string()),
        }
    }
}

/// One violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// JSON Pointer to the invalid part; empty for the whole value.
    pub path: String,
    pub message: String,
}

impl Schema {
    /// Checks a schema against the bounds. It may still be invalid: see [`Schema::compile`].
    pub fn bounded(source: &Value) -> Result<Schema, Error> {
        let text = serde_json::to_vec(source)
            .map_err(|error| Error::Invalid { path: String::new(), message: error.to_string() })?;
        let pattern_memory = bounds::check(source, text.len())?;
        Ok(Schema {
            source: Arc::new(source.clone()),
            digest: Sha256::digest(&text).into(),
            memory: text.len() * MEMORY_PER_BYTE + pattern_memory,
        })
    }

    /// Compiles the schema, unless it has been compiled before.
    async fn compile(&self) -> Result<(), Error> {
        pool::check(self, None, 0).await.map(drop)
    }

    /// At most `most` violations of a value. Their messages quote it.
    pub async fn faults(&self, value: Arc<Value>, most: usize) -> Result<Vec<Fault>, Error> {
        pool::check(self, Some(value), most).await
    }
}

/// Whether a schema can be used: it is within the bounds and compiles.
pub async fn check(source: &Value) -> Result<(), Error> {
    Schema::bounded(source)?.compile().await
}

/// A schema that is part of the product. Values are checked on the caller's thread.
pub struct OwnSchema {
    validator: Validator,
}

impl OwnSchema {
    /// Compiles a schema, or returns why it cannot be used.
    pub fn compile(schema: &Value) -> Result<OwnSchema, String> {
        match jsonschema::validator_for(schema) {
            Ok(validator) => Ok(OwnSchema { validator }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The violations. Their messages quote the value.
    pub fn faults<'a>(&'a self, value: &'a Value) -> impl Iterator<Item = Fault> + 'a {
        self.validator
            .iter_errors(value)
            .map(|error| Fault { path: error.instance_path().to_string(), message: error.to_string() })
    }

    /// The violations, for a value that may contain secrets: their messages do not quote it.
    pub fn masked_faults<'a>(&'a self, value: &'a Value) -> impl Iterator<Item = Fault> + 'a {
        self.validator.iter_errors(value).map(|error| Fault {
            path: error.instance_path().to_string(),
            message: error.masked_with("this").to_string(),
        })
    }
}

impl Fault {
    /// The path in dotted form, such as `tasks.0.name`.
    pub fn dotted_path(&self) -> String {
        self.path.trim_start_matches('/').replace('/', ".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> OwnSchema {
        let item = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        OwnSchema::compile(&json!({"type": "object", "properties": {"list": {"type": "array", "items": item}}}))
            .unwrap()
    }

    #[test]
    fn a_fault_has_a_path_and_a_message() {
        let value = json!({"list": [{"n": 1}, {"n": "s3cret"}]});
        let fault = schema().faults(&value).next().unwrap();
        assert_eq!((fault.path.as_str(), fault.dotted_path().as_str()), ("/list/1/n", "list.1.n"));
        assert_eq!(fault.message, r#""s3cret" is not of type "integer""#);
        let masked = schema().masked_faults(&value).next().unwrap();
        assert_eq!(masked.message, r#"this is not of type "integer""#);
        let whole = schema().faults(&json!(7)).next().unwrap();
        assert_eq!((whole.path.as_str(), whole.dotted_path().as_str()), ("", ""));
    }

    #[test]
    fn a_valid_value_has_no_faults() {
        let value = json!({"list": [{"n": 1}]});
        assert_eq!(schema().faults(&value).count(), 0);
    }

    #[test]
    fn an_invalid_schema_is_an_error() {
        assert!(OwnSchema::compile(&json!({"type": 7})).is_err());
    }

    async fn faults(schema: Value, value: Value) -> Result<Vec<Fault>, Error> {
        Schema::bounded(&schema)?.faults(Arc::new(value), 10).await
    }

    /// `count` schemas, each of which refers `width` times to the next.
    fn chain(count: usize, width: usize) -> Value {
        let level = |ix: usize| match ix + 1 < count {
            true => json!({"allOf": vec![json!({"$ref": format!("#/$defs/s{}", ix + 1)}); width]}),
            false => json!({"type": "object"}),
        };
        let defs: serde_json::Map<String, Value> = (0..count).map(|ix| (format!("s{ix}"), level(ix))).collect();
        json!({"$ref": "#/$defs/s0", "$defs": defs})
    }

    fn check_bound(schema: &Value, path: &str, part: &str) {
        match Schema::bounded(schema).err() {
            Some(Error::Bound { path: at, message }) => {
                assert!(message.contains(part), "{message}");
                assert_eq!(at, path, "{message}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_schema_beyond_a_bound_is_refused_before_it_is_compiled() {
        check_bound(&chain(45_000, 1), "", "bytes of JSON");
        check_bound(&chain(501, 1), "", "501 references");
        check_bound(&chain(40, 1), "/$defs/s16", "nested more than 32 deep");
        check_bound(&chain(9, 10), "/$defs/s4", "expands to more than 10000 schemas");
        check_bound(&chain(15, 2), "/$defs/s2", "expands to more than 10000 schemas");
        let deep = (0..33).fold(json!({}), |inner, _| json!({"properties": {"a/b": inner}}));
        check_bound(&deep, &"/properties/a~1b".repeat(33), "nested more than 32 deep");
        let patterns = vec![json!({"pattern": "a"}); 101];
        check_bound(&json!({"anyOf": patterns}), "", "101 regular expressions");
        check_bound(&json!({"x".repeat(70_000): 1}), "", "bytes of JSON");
    }

    #[test]
    fn a_schema_that_applies_itself_to_the_same_value_is_refused() {
        check_bound(&json!({"$ref": "#"}), "", "would never end");
        let two = json!({"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}});
        check_bound(
            &json!({"$defs": two, "properties": {"x": {"$ref": "#/$defs/b"}}}),
            "/$defs/a/anyOf/0",
            "would never end",
        );
        // One way around the cycle descends, another does not.
        let mixed = json!({"a": {"properties": {"x": {"$ref": "#/$defs/b"}}, "allOf": [{"$ref": "#/$defs/b"}]},
            "b": {"allOf": [{"$ref": "#/$defs/a"}]}});
        check_bound(&json!({"$defs": mixed, "$ref": "#/$defs/a"}), "/$defs/b/allOf/0", "would never end");
    }

    #[test]
    fn a_reference_must_lead_to_a_schema_of_the_same_document() {
        let check = |schema: Value, part: &str| {
            let error = Schema::bounded(&schema).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{schema}: {error:?}");
        };
        check(json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}), "/$ref: the reference");
        check(json!({"$ref": "other.json#/a"}), "points outside");
        check(json!({"$ref": "#/$defs/none"}), "points to nothing");
        check(json!({"$ref": "#none"}), "points to nothing");
        check(json!({"enum": [{}], "$ref": "#/enum/0"}), "points to data");
        check(json!({"$defs": {"a": {}}, "$ref": "#/$defs"}), "points to nothing");
        check(json!({"properties": {"a": {"$id": "x"}}}), "cannot have an id");
        check(json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}), "is there twice");
    }

    #[tokio::test]
    async fn references_of_every_form_are_followed() {
        let defs =
            json!({"a b": {"type": "string"}, "c": {"$anchor": "named", "type": "integer"}, "enum": {"const": 1}});
        let schema = json!({"$id": "https://example.com/s", "$defs": defs, "x-more": {"deep": {"type": "boolean"}},
            "properties": {"s": {"$ref": "#/$defs/a%20b"}, "n": {"$ref": "#named"}, "e": {"$ref": "#/$defs/enum"},
                "m": {"$ref": "#/x-more/deep"}, "again": {"$ref": "#"}, "id": {"type": "string"}}});
        let valid = json!({"s": "a", "n": 1, "e": 1, "m": true, "again": {"again": {"n": 2}}, "id": "x"});
        assert_eq!(faults(schema.clone(), valid).await, Ok(Vec::new()));
        let wrong = json!({"s": 1, "n": "a", "e": 2, "m": 1, "again": {"again": {"n": "2"}}, "id": 1});
        let mut paths: Vec<String> = faults(schema, wrong).await.unwrap().into_iter().map(|fault| fault.path).collect();
        paths.sort();
        assert_eq!(paths, ["/again/again/n", "/e", "/id", "/m", "/n", "/s"]);
    }

    #[tokio::test]
    async fn properties_that_a_subschema_knows_count_as_evaluated() {
        let schema = json!({"properties": {"a": true}, "unevaluatedProperties": false,
            "$defs": {"d": {"properties": {"d": true}}},
            "allOf": [{"properties": {"b": true}}, {"$ref": "#/$defs/d"}], "anyOf": [{"properties": {"c": {"const": 1}}}]});
        assert_eq!(faults(schema.clone(), json!({"a": 1, "b": 1, "c": 1, "d": 1})).await, Ok(Vec::new()));
        assert_eq!(faults(schema, json!({"a": 1, "z": 1})).await.map(|faults| faults.len()), Ok(1));
    }

    #[tokio::test]
    async fn schemas_of_older_drafts_are_guarded_too() {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://x.example/s",
            "definitions": {"n": {"type": "integer"}}, "items": [{"$ref": "#/definitions/n"}, {"type": "string"}]});
        assert_eq!(faults(schema.clone(), json!([1, "a"])).await, Ok(Vec::new()));
        assert_eq!(faults(schema, json!(["a", 1])).await.map(|faults| faults.len()), Ok(2));
    }

    #[tokio::test]
    async fn a_value_that_costs_too_much_is_refused_and_the_threads_survive() {
        let schema = json!({"items": {"$ref": "#/$defs/s1"}, "$defs": chain(13, 2)["$defs"]});
        let long = json!(vec![json!({}); 100_000]);
        for _ in 0..8 {
            let error = faults(schema.clone(), long.clone()).await.unwrap_err();
            assert!(matches!(&error, Error::Costly(why) if why.contains("100 ms")), "{error:?}");
        }
        assert_eq!(faults(json!({"type": "object"}), json!({})).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_value_nested_too_deeply_for_the_stack_is_refused() {
        let each = (0..29).fold(json!({"properties": {"c": {"$ref": "#"}}}), |inner, _| json!({"allOf": [inner]}));
        let wrap = |inner| Value::Object(std::iter::once(("c".to_string(), inner)).collect());
        // Made anew each time: the stack of a test is too small to copy it.
        let deep = || (0..4_000).fold(json!({}), |inner, _| wrap(inner));
        let mut error = faults(each.clone(), deep()).await.unwrap_err();
        // On a busy machine the time may be up before the stack is.
        for _ in 0..100 {
            if !matches!(&error, Error::Costly(why) if why.contains("100 ms")) {
                break;
            }
            error = faults(each.clone(), deep()).await.unwrap_err();
        }
        assert_eq!(error, Error::Costly("it is nested too deeply for the schema".into()));
    }

    #[tokio::test]
    async fn patterns_do_not_backtrack_and_match_bounded_texts() {
        let schema = json!({"type": "string", "pattern": "^(a+)+$"});
        let long = "a".repeat(10_000) + "!";
        assert_eq!(faults(schema.clone(), json!(long)).await.map(|faults| faults.len()), Ok(1));
        let error = faults(schema, json!("a".repeat(20_000))).await.unwrap_err();
        assert!(matches!(&error, Error::Costly(why) if why.contains("16384 bytes")), "{error:?}");
        let common = json!({"pattern": "^.{1,255}$", "properties": {"w": {"pattern": "^[\\w.-]{1,1000}@\\d+$"}}});
        assert_eq!(faults(common, json!({"w": "a.b@1"})).await, Ok(Vec::new()));
        let error = check(&json!({"pattern": "(a{1,1000}){1,1000}"})).await.unwrap_err();
        assert!(matches!(&error, Error::Invalid { path, .. } if path == "/pattern"), "{error:?}");
        let names = json!({"patternProperties": {"^a": true, "^b": true}});
        let many: serde_json::Map<String, Value> = (0..50_000).map(|ix| (format!("name{ix}"), json!(1))).collect();
        let error = faults(names, Value::Object(many)).await.unwrap_err();
        assert!(matches!(&error, Error::Costly(why) if why.contains("names")), "{error:?}");
    }

    #[tokio::test]
    async fn the_first_fault_is_reported_where_all_would_be_too_many() {
        let names: Vec<String> = (0..2_000).map(|ix| format!("n{ix}")).collect();
        let schema = json!({"items": {"type": "object", "required": names}});
        let found = faults(schema, json!(vec![json!({}); 1_000])).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "/0");
    }

    #[tokio::test]
    async fn a_message_quotes_only_part_of_a_long_value() {
        let found = faults(json!({"type": "integer"}), json!("x".repeat(100_000))).await.unwrap();
        assert!(found[0].message.len() < 2_000, "{}", found[0].message.len());
    }
}
