//! JSON Schemas: compiles them and reports what is wrong with a value. Nothing is fetched, so a schema must be
//! self-contained.

use jsonschema::Validator;
use serde_json::Value;

/// A compiled schema.
pub struct Schema {
    validator: Validator,
}

/// One violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// JSON Pointer to the invalid part; empty for the whole value.
    pub path: String,
    pub message: String,
}

impl Schema {
    /// Compiles a schema, or returns why it cannot be used.
    pub fn compile(schema: &Value) -> Result<Schema, String> {
        match jsonschema::validator_for(schema) {
            Ok(validator) => Ok(Schema { validator }),
            Err(error) => Err(error.to_string()),
        }
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// The violations, found lazily. Their messages quote the value.
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

    fn schema() -> Schema {
        let item = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        Schema::compile(&json!({"type": "object", "properties": {"list": {"type": "array", "items": item}}})).unwrap()
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
        assert!(schema().is_valid(&value));
        assert_eq!(schema().faults(&value).count(), 0);
    }

    #[test]
    fn an_invalid_schema_is_an_error() {
        assert!(Schema::compile(&json!({"type": 7})).is_err());
    }
}
