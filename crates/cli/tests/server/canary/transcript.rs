//! Everything that was shown, sent or stored, and the search through it.

use super::echo::written;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// The strings to search for; of base64 only the part that depends on the secret alone.
fn traces(secret: &str) -> Vec<String> {
    let base64 = |before: usize| {
        let padded = [vec![b' '; before], secret.into()].concat();
        let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        [STANDARD.encode(&padded)[from..to].to_string(), URL_SAFE.encode(&padded)[from..to].to_string()]
    };
    let mut all: Vec<String> = written(secret).into_iter().take(8).collect();
    all.extend((0..3).flat_map(base64));
    all
}

/// All of it, with where it was.
#[derive(Default)]
pub struct Transcript(Vec<(String, Vec<u8>)>);

impl Transcript {
    pub fn add(&mut self, place: &str, bytes: impl Into<Vec<u8>>) {
        self.0.push((place.to_string(), bytes.into()));
    }

    /// The output of `pg_dump`, also with the escapes of `COPY` undone.
    pub fn add_dump(&mut self, dump: &str) {
        self.add("a dump", dump);
        self.add("a dump, read", dump.replace("\\\\", "\\"));
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count() / 2 * 2;
        let bytes = dump.split("\\\\x").skip(1).flat_map(|text| {
            let pairs = (0..digits(text)).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap());
            pairs.chain([b' ']).collect::<Vec<u8>>()
        });
        let bytes: Vec<u8> = bytes.collect();
        assert!(dump.contains("canary") && !bytes.is_empty(), "this is no dump of it: {dump}");
        self.add("the bytes of a dump", bytes);
    }

    #[track_caller]
    pub fn holds_no(&self, secret: &str) {
        for (place, bytes) in &self.0 {
            for trace in traces(secret) {
                let Some(at) = bytes.windows(trace.len()).position(|part| part == trace.as_bytes()) else { continue };
                let around = String::from_utf8_lossy(&bytes[at.saturating_sub(80)..(at + 80).min(bytes.len())]);
                panic!("{place} holds {trace:?}: …{around}…");
            }
        }
    }
}
