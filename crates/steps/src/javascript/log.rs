//! What code writes with `console`, within bounds: so many lines and bytes, then one line that says that the rest is gone.
//! The worker keeps to it, so that a loop does not flood the pipe, and the server, which does not rely on that.

use super::wire::Line;
use serde_json::{Value, json};

const MAX_LINES: usize = 1_000;
const MAX_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub struct Log {
    lines: usize,
    bytes: usize,
    kept: Vec<Value>,
}

impl Log {
    /// The line as far as there is room for it; none once the log is full and has said so.
    pub fn take(&mut self, mut line: Line) -> Option<Line> {
        if self.bytes > MAX_BYTES || self.lines > MAX_LINES {
            return None;
        }
        self.lines += 1;
        if self.lines > MAX_LINES || self.bytes + line.text.len() > MAX_BYTES {
            let room = line.text.floor_char_boundary(MAX_BYTES - self.bytes);
            self.bytes = MAX_BYTES + 1;
            // What the line begins with is still of use; another beginning is not.
            line.text.truncate(if self.lines > MAX_LINES { 0 } else { room });
            line.text.push_str(&format!("… (a log ends after {MAX_LINES} lines or {} KB)", MAX_BYTES / 1024));
        }
        self.bytes += line.text.len();
        Some(line)
    }

    pub fn keep(&mut self, line: Line) {
        if let Some(line) = self.take(line) {
            self.kept.push(json!({"level": line.level, "text": line.text}));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// All lines; nothing if there are none.
    pub fn into_value(self) -> Option<Value> {
        (!self.kept.is_empty()).then_some(Value::Array(self.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(lines: impl Iterator<Item = String>) -> Vec<String> {
        let mut log = Log::default();
        lines.for_each(|text| log.keep(Line { level: "info".into(), text }));
        let value = log.into_value().unwrap_or_default();
        value.as_array().into_iter().flatten().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_log_ends_after_so_many_lines_or_bytes_and_says_so() {
        assert_eq!(kept(std::iter::empty()), Vec::<String>::new());
        let many = kept((0..5_000).map(|n| n.to_string()));
        assert_eq!((many.len(), many[999].as_str()), (1_001, "999"));
        assert_eq!(many[1_000], "… (a log ends after 1000 lines or 64 KB)");
        let long = kept((0..100).map(|_| "ä".repeat(1_000)));
        assert_eq!(long.len(), 33);
        assert!(long[32].starts_with("ää") && long[32].ends_with("… (a log ends after 1000 lines or 64 KB)"));
        assert!(long.iter().map(String::len).sum::<usize>() < MAX_BYTES + 100);
    }
}
