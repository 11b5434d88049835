//! First guesses at definitions, as models write them in many dialects of others. What the faults say is applied as a
//! program would: each fault's `fix`, again until there is none.

use serde_json::{Value, json};
use stepwell_formats::{Fix, check_value, document};

const FILES: [(&str, &str); 5] = [
    ("actions", include_str!("actions.yaml")),
    ("lists", include_str!("lists.yaml")),
    ("tasks", include_str!("tasks.yaml")),
    ("others", include_str!("others.yaml")),
    ("agents", include_str!("agents.yaml")),
];
const ROUNDS: usize = 2;

/// Every guess with its name: its file, and its number there.
fn guesses() -> Vec<(String, Value)> {
    let each = |(file, text): (&str, &str)| -> Vec<(String, Value)> {
        let documents = text.split("\n---\n").enumerate();
        let read = |text: &str| {
            document(text.as_bytes(), Some("guess.yaml")).unwrap_or_else(|faults| panic!("{faults}: {text}"))
        };
        documents.map(|(n, text)| (format!("{file} {}", n + 1), read(text))).collect()
    };
    FILES.into_iter().flat_map(each).collect()
}

/// The document after the corrections of its faults.
fn corrected(mut document: Value) -> Option<Value> {
    let faults = check_value(&document).definition.err()?;
    let fixes: Vec<Fix> = faults.list.into_iter().filter_map(|fault| fault.fix).collect();
    for Fix { path, value } in &fixes {
        *document.pointer_mut(path)? = value.clone();
    }
    (!fixes.is_empty()).then_some(document)
}

#[test]
fn a_misspelt_trigger_is_corrected_to_the_word_that_its_hint_names() {
    let check = |written: &str, expected: &str| {
        let definition = json!({"name": "x", "trigger": written, "tasks": {"a": {"tool": "echo"}}});
        assert_eq!(corrected(definition).unwrap()["trigger"], expected, "{written}");
    };
    check("manuel", "manual");
    check("apii", "api");
    check("push", "webhook");
}

#[test]
fn most_first_guesses_are_valid_once_their_hints_are_applied() {
    let all = guesses();
    assert_eq!(all.len(), 100);
    let (mut rounds, mut wrong) = ([0; ROUNDS + 1], String::new());
    for (name, guess) in &all {
        let mut document = guess.clone();
        let mut round = 0;
        while round < ROUNDS
            && let Some(next) = corrected(document.clone())
        {
            (document, round) = (next, round + 1);
        }
        match check_value(&document).definition {
            Ok(_) => {
                rounds[round] += 1;
                if std::env::var_os("SHOW").is_some() {
                    println!("{name}: {document}");
                }
            }
            Err(faults) => wrong += &format!("{name}:\n{faults}\n{document}\n\n"),
        }
    }
    let valid: usize = rounds.iter().sum();
    println!(
        "first guesses: {} valid as written, {} after one round of hints, {} after two, {} never",
        rounds[0],
        rounds[1],
        rounds[2],
        all.len() - valid
    );
    assert!(valid >= 90, "{valid} of {}:\n{wrong}", all.len());
}
