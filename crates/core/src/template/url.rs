//! Values in the URL of a request: a hole inside the path or query is percent-encoded, so that data cannot add segments
//! or parameters, and a hole inside the host must not end it, so that data cannot choose another one.
//!
//! Not here: a hole at the very beginning. Its value is the address itself.

use super::{Node, Part, Template};
use crate::expr::Missing;

/// Why a part of a URL is encoded or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filled {
    /// Encoded here.
    Encode,
    /// The expression is `urlencode(…)` already.
    Encoded,
    /// In the host, inserted unchanged.
    Host,
}

/// A value in a URL.
pub(super) struct Inserted<'a> {
    pub filled: Filled,
    /// Byte range in the URL.
    pub start: usize,
    pub end: usize,
    /// The expression as written.
    pub source: &'a str,
}

impl Template {
    /// Makes the text of this field a URL. A field that is one hole stays whole, and `raw(…)` is inserted unchanged.
    pub fn encode_url(&mut self, field: &str) {
        let Node::Object(fields) = &mut self.root else { return };
        let Some((_, Node::Text(parts))) = fields.iter_mut().find(|(name, _)| name == field) else { return };
        let mut before = String::new();
        for part in parts {
            match part {
                Part::Literal(text) => before.push_str(text),
                Part::Hole(ix) => {
                    let expr = &self.holes[ix.0].expr;
                    let filled = if expr.is_call("raw") {
                        None
                    } else if !is_after_host(&before) {
                        before.contains("://").then_some(Filled::Host)
                    } else if expr.is_call("urlencode") {
                        Some(Filled::Encoded)
                    } else {
                        Some(Filled::Encode)
                    };
                    if let Some(filled) = filled {
                        *part = Part::UrlHole(*ix, filled);
                    }
                    before.push('x');
                }
                Part::UrlHole(..) => {}
            }
        }
    }
}

/// Whether text that follows `before` is in the path, the query or the fragment.
fn is_after_host(before: &str) -> bool {
    let rest = before.split_once("://").map_or(before, |(_, rest)| rest);
    rest.contains(['/', '?', '#', '\\'])
}

impl Inserted<'_> {
    /// Refuses a value that makes the request go elsewhere than the rest of the URL says.
    pub fn check(&self, url: &str) -> Result<(), Missing> {
        match self.filled {
            Filled::Host => self.check_host(url),
            Filled::Encode | Filled::Encoded => self.check_segment(url),
        }
    }

    /// In the host, these characters end it, or make what precedes them a user name.
    fn check_host(&self, url: &str) -> Result<(), Missing> {
        let ends = |c: char| matches!(c, '/' | '\\' | '?' | '#' | '@') || c.is_whitespace() || c.is_control();
        match url[self.start..self.end].chars().find(|c| ends(*c)) {
            Some(found) => Err(Missing::Host { path: self.source.trim().to_owned(), found }),
            None => Ok(()),
        }
    }

    /// URL parsers resolve the segments `.` and `..` of a path, encoded or not.
    fn check_segment(&self, url: &str) -> Result<(), Missing> {
        let (before, after) = (&url[..self.start], &url[self.end..]);
        if before.contains(['?', '#']) {
            return Ok(());
        }
        let from = before.rfind(['/', '\\']).map_or(0, |at| at + 1);
        let to = self.end + after.find(['/', '\\', '?', '#']).unwrap_or(after.len());
        let segment = url[from..to].replace("%2e", ".").replace("%2E", ".");
        match segment.as_str() {
            "." | ".." => Err(Missing::Segment { path: self.source.trim().to_owned(), segment }),
            _ => Ok(()),
        }
    }
}
