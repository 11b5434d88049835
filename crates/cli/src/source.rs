//! Reads definition files for commands: a path, or `-` for standard input.

use anyhow::Context;
use std::io::Read;
use stepwell_core::definition::Definition;
use stepwell_core::limits;
use stepwell_formats::Faults;

pub struct Source {
    /// As given on the command line; `<stdin>` for `-`.
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Source {
    /// Reads at most one byte more than the maximum length of a definition, enough to detect that it is too long.
    pub fn read(path: &str) -> anyhow::Result<Source> {
        let most = limits::MAX_DOCUMENT_BYTES as u64 + 1;
        let mut bytes = Vec::new();
        if path == "-" {
            std::io::stdin().take(most).read_to_end(&mut bytes).context("cannot read standard input")?;
            return Ok(Source { name: "<stdin>".into(), bytes });
        }
        let file = std::fs::File::open(path).with_context(|| format!("cannot open {path}"))?;
        file.take(most).read_to_end(&mut bytes).with_context(|| format!("cannot read {path}"))?;
        Ok(Source { name: path.into(), bytes })
    }

    pub fn compile(&self) -> Result<Definition, Faults> {
        stepwell_formats::read(&self.bytes, Some(&self.name))
    }

    /// Reads several files, or prints the faults of all of them.
    pub fn read_all(paths: &[String]) -> anyhow::Result<Option<Vec<Source>>> {
        let sources = paths.iter().map(|path| Source::read(path)).collect::<anyhow::Result<Vec<Source>>>()?;
        let faults = sources.iter().filter_map(|source| Some((source, source.compile().err()?)));
        let mut good = true;
        for (source, faults) in faults {
            eprint!("{}", source.explain(&faults));
            good = false;
        }
        Ok(good.then_some(sources))
    }

    /// Renders every fault with its source line.
    pub fn explain(&self, faults: &Faults) -> String {
        faults.render(&self.name, &String::from_utf8_lossy(&self.bytes))
    }
}

/// Reads and compiles a file, or prints its faults.
pub fn load(path: &str) -> anyhow::Result<Option<Definition>> {
    let source = Source::read(path)?;
    match source.compile() {
        Ok(definition) => Ok(Some(definition)),
        Err(faults) => {
            eprint!("{}", source.explain(&faults));
            Ok(None)
        }
    }
}
