//! Values in the URL of a request: a hole inside the path or query is percent-encoded, so that data cannot add segments
//! or parameters.
//!
//! Not here: the host. A hole before the first `/`, `?` or `#` after the host is part of the address itself.

use super::{Node, Part, Template};
use crate::expr::Missing;

/// Why a part of a URL is encoded or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filled {
    /// Encoded here.
    Encode,
    /// The expression is `urlencode(…)` already.
    Encoded,
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
                    if is_after_host(&before) && !expr.is_call("raw") {
                        let filled = if expr.is_call("urlencode") { Filled::Encoded } else { Filled::Encode };
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

/// Refuses a filled part that makes its segment of the path `.` or `..`: URL parsers resolve those, encoded or not.
pub(super) fn check_segment(url: &str, start: usize, end: usize, source: &str) -> Result<(), Missing> {
    let (before, after) = (&url[..start], &url[end..]);
    if before.contains(['?', '#']) {
        return Ok(());
    }
    let from = before.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let to = end + after.find(['/', '\\', '?', '#']).unwrap_or(after.len());
    let segment = url[from..to].replace("%2e", ".").replace("%2E", ".");
    match segment.as_str() {
        "." | ".." => Err(Missing::Segment { path: source.trim().to_owned(), segment }),
        _ => Ok(()),
    }
}
