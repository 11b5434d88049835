//! The first API keys: stored in files of the data directory, or supplied from outside.

use crate::config::Secret;
use std::io::Write;
use std::path::Path;
use stepwell_engine::{Engine, Error};

const ADMIN: &str = "admin.key";
const AGENT: &str = "agent.key";

/// Creates the first user with one key for people and one for agents. Returns true if this was the first start. The
/// keys are on disk before they are valid: after a crash in between, the next start uses the files that exist. If the
/// key is supplied from outside, no files are written.
pub async fn first(engine: &Engine, directory: &Path, given: Option<&Secret>) -> Result<bool, Error> {
    if let Some(key) = given {
        engine.identity().admit_key(key.reveal()).await?;
        return Ok(false);
    }
    if engine.identity().has_users().await? {
        return Ok(false);
    }
    let made = [key_file(engine, directory, ADMIN)?, key_file(engine, directory, AGENT)?];
    if engine.identity().bootstrap(&made[0], &made[1]).await? {
        return Ok(true);
    }
    // Another node was faster. If it has its own directory, the keys written here are not valid.
    for (name, key) in [ADMIN, AGENT].iter().zip(&made) {
        if let Err(Error::Unauthorised(_)) = engine.identity().authenticate(key).await {
            let _ = std::fs::remove_file(directory.join(name));
        }
    }
    Ok(false)
}

fn key_file(engine: &Engine, directory: &Path, name: &str) -> Result<String, Error> {
    let path = directory.join(name);
    let cannot = |error: std::io::Error| Error::Unavailable(format!("{} cannot be written: {error}", path.display()));
    let secret = engine.identity().new_secret();
    if let Ok(text) = std::fs::read_to_string(&path)
        && text.starts_with("sw_")
        && text.trim().len() == secret.len()
    {
        return Ok(text.trim().to_string());
    }
    let mut maker = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
    // With an external database, the directory may not exist yet.
    maker.recursive(true).create(directory).map_err(cannot)?;
    let fresh = directory.join(format!(".{name}"));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A file left behind by a crash may have wrong permissions.
    let _ = std::fs::remove_file(&fresh);
    let mut file = options.open(&fresh).map_err(cannot)?;
    file.write_all(format!("{secret}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)?;
    std::fs::rename(&fresh, &path).map_err(cannot)?;
    std::fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(cannot)?;
    Ok(secret)
}
