//! Reads definition files for commands: a path, or `-` for standard input.

use anyhow::Context;
use std::io::Read;
use std::path::Path;
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
        stepwell_formats::check(&self.bytes, Some(&self.name)).definition
    }

    /// What is suspicious, with its source lines; empty if there is nothing.
    pub fn warnings(&self) -> String {
        let checked = stepwell_formats::check(&self.bytes, Some(&self.name));
        stepwell_formats::render_warnings(&checked.warnings, &self.name, &String::from_utf8_lossy(&self.bytes))
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
        if good {
            sources.iter().for_each(|source| eprint!("{}", source.warnings()));
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

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Whether a file below a directory is taken for a definition: by its ending, and unless it has tests of one.
pub fn is_definition(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.contains(&ending) && !is_test(path)
}

/// Whether a file has tests: `*.test.yaml`, `*.test.yml` or `*.test.json`.
pub fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    stem.ends_with(".test") && ENDINGS.contains(&ending)
}

/// Collects a named file, or the matching files below a directory, sorted and without hidden ones.
pub fn gather(path: &str, matches: &dyn Fn(&Path) -> bool, into: &mut Vec<String>) -> anyhow::Result<()> {
    if !Path::new(path).is_dir() {
        into.push(path.to_string());
        return Ok(());
    }
    let before = into.len();
    let mut todo = vec![Path::new(path).to_path_buf()];
    while let Some(directory) = todo.pop() {
        let entries = std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", directory.display()))?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            } else if kind.is_dir() {
                todo.push(path);
            } else if matches(&path) && path.is_file() {
                into.push(path.to_str().with_context(|| format!("{} is not text", path.display()))?.to_string());
            }
        }
    }
    into[before..].sort();
    Ok(())
}
