//! Reads other documents, such as configuration files, as plain values. They go through the same reader as workflow
//! definitions, with the same limits and the same fault messages.

use crate::fault::{Fault, Faults};
use crate::{flawed, source};
use serde_json::Value;

/// Reads JSON or YAML. The extension of `file` decides which; without one, the text does.
pub fn document(text: &[u8], file: Option<&str>) -> Result<Value, Faults> {
    let source::Read { root, flaws } = source::read(text, file).map_err(flawed)?;
    if flaws.list.is_empty() {
        return Ok(root.to_json());
    }
    Err(Faults::of(flaws.list.into_iter().map(Fault::from).collect(), flaws.more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_and_json_give_the_same_value() {
        let expected = json!({"listen": "127.0.0.1:0", "limits": {"depth": 7}, "hosts": ["a", "b"], "none": null});
        let yaml = "listen: 127.0.0.1:0\nlimits: {depth: 7}\nhosts:\n  - a\n  - b\nnone:\n";
        assert_eq!(document(yaml.as_bytes(), Some("c.yaml")).unwrap(), expected);
        assert_eq!(document(expected.to_string().as_bytes(), Some("c.json")).unwrap(), expected);
    }

    #[test]
    fn every_flaw_is_reported_with_its_line() {
        let faults = document(b"a: 1\na: 2\nb: 3\nb: 4\n", None).unwrap_err();
        let lines: Vec<Option<u32>> = faults.list.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [Some(2), Some(4)]);
    }
}
