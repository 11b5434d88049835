//! Percent-encoding of a value that becomes one component of a URL (RFC 3986).

use std::fmt::{self, Write};

/// A writer that encodes everything but unreserved characters: letters and digits of ASCII, `-`, `_`, `.` and `~`.
pub(crate) struct Percent<'w, W: Write>(pub &'w mut W);

impl<W: Write> Write for Percent<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    self.0.write_char(char::from(byte))?;
                }
                byte => write!(self.0, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}
