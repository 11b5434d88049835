//! Reads workflow definitions: JSON or YAML, in any of the three dialects, becomes a
//! [`stepwell_core::definition::Definition`] or a list of all its faults.
//!
//! | layer | files |
//! | --- | --- |
//! | text → nodes with positions | `source/` |
//! | nodes → fields, with faults | `draft.rs`, `fields.rs`, `values.rs` |
//! | fields of every definition | `common.rs`, `trigger/` |
//! | when schedules fire | `cron.rs` |
//! | configuration files | `document.rs` |
//! | step types | `kinds/` |
//! | the dialects | `tasks.rs`, `flow/`, `graph/` |
//!
//! Not here: the meaning of a definition (`core`), files (callers read them), clocks.

pub mod code;
mod common;
pub mod cron;
mod document;
mod draft;
mod fault;
mod fields;
mod flow;
mod graph;
mod kinds;
mod render;
mod source;
mod tasks;
mod trigger;
mod values;

pub use document::document;
pub use fault::{Fault, Faults};

use fields::Fields;
use source::{Flaw, Flaws, Node};
use stepwell_core::definition::Definition;

/// Reads a document. The extension of `file` decides whether it is JSON or YAML; without one, the text does.
pub fn read(text: &[u8], file: Option<&str>) -> Result<Definition, Faults> {
    let source::Read { root, flaws } = source::read(text, file).map_err(flawed)?;
    define(&root, flaws)
}

/// Reads a document that is already a JSON value, such as a request body. Faults have paths but no lines.
pub fn read_value(value: &serde_json::Value) -> Result<Definition, Faults> {
    let root = source::from_value(value).map_err(flawed)?;
    define(&root, Flaws::default())
}

fn define(root: &Node, flaws: Flaws) -> Result<Definition, Faults> {
    let mut draft = draft::Draft::after(flaws);
    let definition = Fields::of_root(root, &mut draft).and_then(|fields| common::read(&mut draft, fields, root));
    match definition {
        Some(definition) if draft.is_clean() => Ok(definition),
        _ => Err(draft.into_faults()),
    }
}

fn flawed(flaw: Flaw) -> Faults {
    Faults::of(vec![Fault::from(flaw)], 0)
}
