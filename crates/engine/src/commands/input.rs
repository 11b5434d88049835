//! Checks of names and grants that commands share.

use crate::access::{Caller, check_grant};
use crate::error::Error;

const MAX_NAME: usize = 100;

const MAX_GRANTS: usize = 1_000;

pub(super) fn bad(path: &str, message: &str) -> Error {
    Error::Input { path: path.into(), message: message.into() }
}

/// Names that stand in rights and addresses.
pub(super) fn check_name(path: &str, name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        return Err(bad(path, &format!("1 to {MAX_NAME} letters, digits and any of . _ @ + - are allowed")));
    }
    Ok(())
}

/// Names for people to read.
pub(super) fn check_label(path: &str, name: &str) -> Result<(), Error> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(bad(path, &format!("1 to {MAX_NAME} characters that can be printed are needed")));
    }
    Ok(())
}

pub(super) fn check_grants(caller: &Caller, grants: &[String]) -> Result<(), Error> {
    if grants.len() > MAX_GRANTS {
        return Err(bad("grants", &format!("there are more than {MAX_GRANTS}")));
    }
    for (n, grant) in grants.iter().enumerate() {
        check_grant(grant).map_err(|why| bad(&format!("grants[{n}]"), &why))?;
        if !caller.grants.cover(grant) {
            return Err(Error::Refused(format!("{} does not have {grant} and so cannot give it", caller.name)));
        }
    }
    Ok(())
}
