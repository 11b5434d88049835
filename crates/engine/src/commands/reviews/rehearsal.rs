//! A definition on virtual time, as a review shows it: calls succeed with made-up results, gates are approved.

use serde::Serialize;
use stepwell_core::definition::Definition;
use stepwell_core::simulate::made_up;
use stepwell_core::simulate::play::{Otherwise, Play};
use stepwell_core::simulate::script::Script;

/// A rehearsal of more events stops.
const MAX_EVENTS: u32 = 2_000;

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Rehearsal {
    /// How the run ended; `unfinished` if it took too many events.
    pub status: String,
    /// The steps that ran, in order.
    pub steps: Vec<String>,
    /// Why it failed, or did not end.
    pub error: Option<String>,
}

pub fn rehearse(definition: &Definition) -> Rehearsal {
    let script = Script { input: made_up::input(&definition.graph), ..Script::default() };
    let play = Play { definition, script: &script, otherwise: Otherwise::MakeUp, max_events: MAX_EVENTS };
    let played = play.play();
    let status = if played.stuck.is_some() { "unfinished" } else { played.status };
    let error = played.stuck.or_else(|| played.error.map(|failure| failure.message.to_string()));
    Rehearsal { status: status.to_string(), steps: played.path, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflows::read_definition;
    use serde_json::json;

    #[test]
    fn what_a_definition_reads_of_its_input_and_its_calls_is_made_up() {
        let check = |tasks: serde_json::Value, expected: (&str, &[&str])| {
            let text = json!({"name": "w", "tasks": tasks}).to_string();
            let rehearsal = rehearse(&read_definition(&text).unwrap_or_else(|faults| panic!("{faults}")));
            let steps: Vec<&str> = rehearsal.steps.iter().map(String::as_str).collect();
            assert_eq!((&*rehearsal.status, &*steps), expected, "{rehearsal:?}");
        };
        check(
            json!({
                "get": {"url": "https://a.example.com/{{input.id}}"},
                "gate": {"needs": "get", "approval": {"message": "{{tasks.get.body.total}} for {{trigger.body.who}}?"}},
                "pay": {"needs": "gate", "tool": "bank__pay", "args": {"sum": "{{tasks.get.body.total}}"}},
            }),
            ("completed", &["get", "gate", "pay"]),
        );
        check(
            json!({"each": {"for_each": "{{input.orders}}",
                "tasks": {"ship": {"tool": "ship", "args": {"to": "{{item.to}}"}}}}}),
            ("completed", &["each", "each[0].ship"]),
        );
    }
}
