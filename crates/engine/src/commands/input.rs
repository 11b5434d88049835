//! Validation of names and grants, shared by commands.

use crate::access::{Caller, check_grant};
use crate::error::Error;

const MAX_NAME: usize = 100;
const MAX_GRANTS: usize = 1_000;
/// Bytes of a comment or reason.
const MAX_TEXT: usize = 10_000;

/// The error for an invalid input field.
pub(super) fn invalid(path: &str, message: &str) -> Error {
    Error::Input { path: path.into(), message: message.into() }
}

/// Checks a name that is used in rights and URLs.
pub(super) fn check_name(path: &str, name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        return Err(invalid(path, &format!("must be 1 to {MAX_NAME} letters, digits or any of . _ @ + -")));
    }
    Ok(())
}

/// Checks a display name.
pub(super) fn check_label(path: &str, name: &str) -> Result<(), Error> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(invalid(path, &format!("must be 1 to {MAX_NAME} printable characters")));
    }
    Ok(())
}

/// Checks the length of a comment or reason.
pub(super) fn check_text(path: &str, text: Option<&str>) -> Result<(), Error> {
    match text {
        Some(text) if text.len() > MAX_TEXT => Err(invalid(path, &format!("must be at most {MAX_TEXT} bytes"))),
        _ => Ok(()),
    }
}

/// Checks that the grants are valid and that the caller has them: a caller can only give its own rights.
pub(super) fn check_grants(caller: &Caller, grants: &[String]) -> Result<(), Error> {
    if grants.len() > MAX_GRANTS {
        return Err(invalid("grants", &format!("at most {MAX_GRANTS} grants are allowed")));
    }
    for (n, grant) in grants.iter().enumerate() {
        check_grant(grant).map_err(|why| invalid(&format!("grants[{n}]"), &why))?;
        if !caller.grants.cover(grant) {
            return Err(Error::Refused(format!("{} does not have {grant} and cannot grant it", caller.name)));
        }
    }
    Ok(())
}
