//! Reads workflow definitions: JSON or YAML, in any of the three dialects, becomes a
//! [`stepwell_core::definition::Definition`] or a list of all its faults.
//!
//! | layer | files |
//! | --- | --- |
//! | text → nodes with positions | `source/` |
//! | nodes → fields, with faults | `draft.rs`, `fields.rs`, `values.rs` |
//! | fields of every definition | `common.rs`, `vars.rs`, `trigger/` |
//! | when schedules fire | `cron.rs` |
//! | configuration files | `document.rs` |
//! | what fields there are | `vocabulary/` |
//! | the JSON Schema of definitions | `schema/` |
//! | step types | `kinds/` |
//! | the dialects | `tasks.rs`, `flow/`, `graph/` |
//! | corrections of definitions written for other systems | `guess/` |
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
mod guess;
mod kinds;
mod passage;
mod render;
pub mod schema;
mod source;
mod tasks;
mod trigger;
mod values;
mod vars;
mod vocabulary;

pub use document::document;
pub use fault::{Fault, Faults, Fix, Severity};
pub use passage::Passage;
pub use render::render_warnings;

use fields::Fields;
use source::{Flaw, Flaws};
use stepwell_core::definition::Definition;

/// A document that was read: the definition or all its faults, and beside either what is suspicious.
#[derive(Clone, Debug)]
pub struct Checked {
    pub definition: Result<Definition, Faults>,
    /// In the order of the document.
    pub warnings: Vec<Fault>,
}

/// Reads a document. The extension of `file` decides whether it is JSON or YAML; without one, the text does. Faults that
/// come from the habits of other systems carry corrections.
pub fn check(text: &[u8], file: Option<&str>) -> Checked {
    checked(source::read(text, file), true)
}

/// Reads a document that is already a JSON value, such as a request body. Faults have paths but no lines.
pub fn check_value(value: &serde_json::Value) -> Checked {
    checked(from_value(value), true)
}

/// As [`check`], without the warnings and corrections.
pub fn read(text: &[u8], file: Option<&str>) -> Result<Definition, Faults> {
    checked(source::read(text, file), false).definition
}

/// As [`check_value`], without the warnings and corrections.
pub fn read_value(value: &serde_json::Value) -> Result<Definition, Faults> {
    checked(from_value(value), false).definition
}

fn from_value(value: &serde_json::Value) -> Result<source::Read, Flaw> {
    source::from_value(value).map(|root| source::Read { root, flaws: Flaws::default() })
}

fn checked(read: Result<source::Read, Flaw>, correct: bool) -> Checked {
    let (root, flaws) = match read {
        Ok(source::Read { root, flaws }) => (root, flaws),
        Err(flaw) => return Checked { definition: Err(flawed(flaw)), warnings: Vec::new() },
    };
    let correct = correct && flaws.list.is_empty();
    let mut checked = checked_root(&root, flaws);
    if let Err(faults) = &mut checked.definition
        && correct
    {
        guess::correct(&root, faults, |corrected| read_value(corrected).err().map_or(Vec::new(), |faults| faults.list));
    }
    checked
}

fn checked_root(root: &source::Node, flaws: Flaws) -> Checked {
    let mut draft = draft::Draft::after(flaws);
    let definition = Fields::of_root(root, &mut draft).and_then(|fields| common::read(&mut draft, fields, root));
    let warnings = draft.take_warnings();
    let definition = match definition {
        Some(definition) if draft.is_clean() => Ok(definition),
        _ => Err(Faults { warnings: warnings.clone(), ..draft.into_faults() }),
    };
    Checked { definition, warnings }
}

fn flawed(flaw: Flaw) -> Faults {
    Faults::of(vec![Fault::from(flaw)], 0)
}
