//! A dry run: a definition on virtual time, with the results that the caller gives or made-up ones. Nothing is called,
//! and nothing is stored.

use super::input::invalid;
use super::{Reviews, Source, Workflows};
use crate::error::Error;
use serde_json::Value;
use std::sync::Arc;
use stepwell_core::definition::Definition;
use stepwell_core::simulate::play::{Otherwise, Play, Played};
use stepwell_core::simulate::script::Script;

/// A simulation of more events stops.
const MAX_EVENTS: u32 = 2_000;

/// What is simulated.
pub enum Rehearsed<'a> {
    /// The current version of a workflow.
    Stored(&'a str),
    /// A definition that need not be stored.
    Written(Source<'a>),
}

/// How a simulated run went.
pub struct Simulation {
    pub workflow: String,
    /// `None` for a definition that is not stored.
    pub version: Option<u32>,
    pub played: Played,
    /// Which policies apply to which steps, as far as that is known before a run.
    pub policies: Vec<String>,
}

impl Workflows<'_> {
    /// Plays a definition. Needs a right to define, run or read; for a definition that is not stored, to define.
    pub async fn simulate(&self, rehearsed: Rehearsed<'_>, script: Script) -> Result<Simulation, Error> {
        let input = Arc::new(script.input.clone());
        let (definition, version): (Definition, Option<u32>) = match rehearsed {
            Rehearsed::Stored(name) => {
                let compiled = self.find(name).await?;
                compiled.check_input(&input).await?;
                (compiled.definition.clone(), Some(compiled.row.version))
            }
            Rehearsed::Written(source) => {
                let checked = self.check(source).await?;
                checked.check_input(&input).await?;
                (checked.definition.clone(), None)
            }
        };
        script.check(&definition.graph).map_err(|(path, why)| invalid(&path, &why))?;
        let policies = Reviews::new(self.rooms, self.caller).policies_on(&definition).await?;
        let workflow = definition.name.clone();
        let played = tokio::task::spawn_blocking(move || {
            let play =
                Play { definition: &definition, script: &script, otherwise: Otherwise::MakeUp, max_events: MAX_EVENTS };
            play.play()
        });
        let played = played.await.map_err(|_| Error::Unavailable("the simulation did not end".into()))?;
        Ok(Simulation { workflow, version, played, policies })
    }
}

impl Simulation {
    /// The steps that made a call, with what they were given.
    pub fn calls(&self) -> impl Iterator<Item = (&String, &Vec<Value>)> {
        self.played.calls.iter()
    }
}
