//! Tests that the schema and the reader agree, on random documents.
//!
//! Both directions count: what the reader accepts, the schema accepts; and where the reader reports a fault of
//! [`CAUGHT`], the schema refuses the document. A document that the schema refuses has a fault that one object shows.

mod draw;

use super::{CAUGHT, Which, schema};
use crate::vocabulary::NODE;
use crate::{Fault, code, read_value};
use draw::Draw;
use jsonschema::Validator;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

const DOCUMENTS: u64 = 10_000;

/// Faults that the schema catches in part: their values have a form, or bounds, and more that only the reader knows.
const PARTLY: &[&str] = &[
    code::BAD_BACKOFF,
    code::BAD_DURATION,
    code::BAD_HOST,
    code::BAD_NAME,
    code::BAD_NUMBER,
    code::BAD_SCHEMA,
    code::BAD_URL,
    code::BAD_VALUE,
    code::EMPTY_BODY,
    code::LIMIT_DEPTH,
    code::LIMIT_STEPS,
    code::NOT_CONSTANT,
    code::RESERVED_NAME,
    "no-start",
];

/// Faults with a code in [`CAUGHT`] that depend on more than one object, or on an order of values.
const BEYOND: &[&str] = &[
    "the gate times out before it escalates",
    "the branch has no condition",
    "a branch has `condition` or `conditions`, not both",
];

fn validator(which: Which) -> Validator {
    jsonschema::options().build(&schema(which)).expect("a valid schema")
}

fn is_caught(fault: &Fault) -> bool {
    CAUGHT.contains(&fault.code) && !BEYOND.contains(&fault.message.as_str())
}

/// Whether a node is disabled, so that most of its fields are not read, or has its fields in several places, or in
/// objects within each other, so that only some of them are. The schema is lenient there.
fn is_odd(document: &Json) -> bool {
    let own = |object: &Json| {
        let names = object.as_object().into_iter().flatten().map(|(name, _)| name);
        names.filter(|name| NODE.find(name).is_some_and(|def| !def.kinds.is_empty())).count() > 0
    };
    let odd = |node: &Json| {
        let data = &node["data"];
        let places = [node, &node["nodeConfig"], &node["config"], data, &data["nodeConfig"]];
        let nested = [&node["nodeConfig"]["config"], &node["nodeConfig"]["data"], &node["config"]["data"]];
        places.iter().any(|place| place["isDisabled"] == true)
            || places.iter().filter(|place| own(place)).count() > 1
            || nested.iter().any(|place| place.is_object())
    };
    document["nodes"].as_array().is_some_and(|nodes| nodes.iter().any(odd))
}

/// Whether a node has one field in two places. The reader takes the outer one; the schema checks both.
fn is_repeated(document: &Json) -> bool {
    let twice = |node: &Json| {
        let places = [Some(node), node.get("nodeConfig"), node.get("config"), node.get("data")];
        let names = places.iter().flatten().filter_map(|place| place.as_object()).flat_map(|place| place.keys());
        let mut names: Vec<&String> = names.collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    };
    document["nodes"].as_array().is_some_and(|nodes| nodes.iter().any(twice))
}

fn faults_of(document: &Json) -> Vec<Fault> {
    read_value(document).err().map(|faults| faults.list).unwrap_or_default()
}

/// What the two disagree on, if they do.
fn disagreement(validator: &Validator, document: &Json, faults: &[Fault]) -> Option<String> {
    let shown: Vec<String> = faults.iter().map(|fault| format!("{fault} [{}]", fault.code)).collect();
    let refused = validator.iter_errors(document).next().map(|error| format!("{} at {}", error, error.instance_path()));
    match refused {
        None => {
            let missed = faults.iter().find(|fault| is_caught(fault) && !is_odd(document))?;
            Some(format!("the schema accepts, but: {missed} [{}]", missed.code))
        }
        Some(why) => {
            let structural = |fault: &Fault| CAUGHT.contains(&fault.code) || PARTLY.contains(&fault.code);
            (!faults.iter().any(structural) && !is_repeated(document))
                .then(|| format!("the schema refuses ({why}), the reader says {shown:?}"))
        }
    }
}

#[test]
fn schema_and_reader_agree_on_random_documents() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed);
    let schemas: Vec<(Which, Validator)> = Which::NAMES.iter().map(|(_, which)| (*which, validator(*which))).collect();
    let corpus = draw::corpus();
    let (mut valid, mut caught, mut disagreed) = (0, BTreeMap::<&str, u32>::new(), Vec::new());
    for number in 0..DOCUMENTS {
        let mut draw = Draw::new(seed + number);
        let document = draw.document(&corpus);
        let faults = faults_of(&document);
        for fault in &faults {
            *caught.entry(fault.code).or_default() += 1;
        }
        valid += u32::from(faults.is_empty());
        let own = if document.get("tasks").is_some() {
            Which::Tasks
        } else if document.get("flow").is_some() {
            Which::Flow
        } else {
            Which::Graph
        };
        // One dialect's schema knows only its own fields.
        let one = ["tasks", "flow", "nodes"].iter().filter(|name| document.get(**name).is_some()).count() == 1;
        let wanted = if one && number % 2 == 1 { own } else { Which::All };
        for (which, validator) in schemas.iter().filter(|(which, _)| *which == wanted) {
            if let Some(why) = disagreement(validator, &document, &faults) {
                disagreed.push(format!("document {number} ({which:?}): {why}\n{document}"));
            }
        }
    }
    println!("seed {seed}: {valid} of {DOCUMENTS} documents are valid; faults: {caught:?}");
    let shown = disagreed.iter().take(20).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(disagreed.is_empty(), "{} disagreements (SEED={seed})\n{shown}", disagreed.len());
    assert!(valid > DOCUMENTS as u32 / 10 && valid < DOCUMENTS as u32 * 9 / 10, "{valid} valid documents");
    let never: Vec<&&str> = CAUGHT.iter().filter(|code| !caught.contains_key(**code)).collect();
    assert!(never.is_empty(), "no random document has {never:?}");
}

#[test]
fn schema_and_reader_agree_on_every_document_of_the_tests() {
    let validator = validator(Which::All);
    let wrong: Vec<String> = draw::corpus()
        .iter()
        .filter_map(|document| {
            disagreement(&validator, document, &faults_of(document)).map(|why| format!("{why}\n{document}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Descriptions are what editors show; an example that is not valid would teach the wrong thing.
#[test]
fn every_field_has_a_description_and_valid_examples() {
    let mut root = schema(Which::All);
    let mut defs = root["$defs"].as_object().expect("definitions").clone();
    defs.insert("workflow".into(), json!({"properties": root["properties"].take()}));
    let (mut fields, mut examples, mut wrong) = (Map::new(), Map::new(), Vec::new());
    for (name, def) in &defs {
        for (field, of) in def.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let Some(description) = of.get("description") else { continue };
            if description.as_str().is_none_or(|text| text.len() < 5) {
                wrong.push(format!("{name}.{field} has no description"));
            }
            for (n, example) in of["examples"].as_array().into_iter().flatten().enumerate() {
                let key = format!("{name}.{field}.{n}");
                fields.insert(key.clone(), json!({"$ref": format!("#/$defs/{name}/properties/{field}")}));
                examples.insert(key, example.clone());
            }
        }
    }
    let all = json!({"properties": fields, "$defs": defs});
    let validator = jsonschema::options().build(&all).expect("a valid schema");
    let examples = Json::Object(examples);
    wrong.extend(validator.iter_errors(&examples).map(|error| format!("{}: {error}", error.instance_path())));
    let undescribed: Vec<String> = [&crate::vocabulary::WORKFLOW, &crate::vocabulary::STEP, &crate::vocabulary::NODE]
        .iter()
        .flat_map(|object| object.fields.iter().filter(|def| def.doc.is_empty()).map(|def| def.name.to_owned()))
        .collect();
    assert!(wrong.is_empty() && undescribed.is_empty(), "{wrong:#?}\n{undescribed:?}");
}

/// The extension for editors brings the schema along. `UPDATE=1` writes it.
#[test]
fn the_packed_schema_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode/schemas/stepwell.json");
    let text = format!("{}\n", schema(Which::All));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("a writable folder");
    }
    let packed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(packed == text, "out of date: UPDATE=1 cargo test -p stepwell-formats packed");
}

#[test]
fn the_operators_are_those_of_core() {
    assert_eq!(crate::vocabulary::OPERATORS, stepwell_core::expr::Operator::names());
}
