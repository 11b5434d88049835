//! Labels of runs: those of the workflow, and those given at the start of a run.

use super::definitions::Compiled;
use crate::error::Error;
use std::collections::BTreeMap;

const MAX_LABELS: usize = 50;
const MAX_LABEL: usize = 200;

/// The labels of the workflow and of the run, as `name=value`.
pub fn labels(compiled: &Compiled, own: BTreeMap<String, String>) -> Result<Vec<String>, Error> {
    let mut all = compiled.definition.labels.clone();
    all.extend(own);
    label_list(&all)
}

/// Checks labels and returns them sorted, as `name=value`.
pub fn label_list(labels: &BTreeMap<String, String>) -> Result<Vec<String>, Error> {
    if labels.len() > MAX_LABELS {
        return Err(Error::Input { path: "labels".into(), message: format!("there are more than {MAX_LABELS}") });
    }
    let plain = |text: &str| text.len() <= MAX_LABEL && !text.chars().any(char::is_control);
    for (name, value) in labels {
        if name.is_empty() || name.contains('=') || !plain(name) || !plain(value) {
            let message =
                format!("a label is a name without = and a value, each of at most {MAX_LABEL} bytes in one line");
            return Err(Error::Input { path: format!("labels.{name}"), message });
        }
    }
    Ok(labels.iter().map(|(name, value)| format!("{name}={value}")).collect())
}
