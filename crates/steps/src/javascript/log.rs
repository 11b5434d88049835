//! Output of `console`, limited in lines and bytes; a last line reports the truncation. The worker enforces the limits,
//! so that a loop does not flood the pipe, and so does the server, which does not trust the worker.

use super::protocol::Line;
use serde_json::{Value, json};

const MAX_LINES: usize = 1_000;
const MAX_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub struct Log {
    lines: usize,
    bytes: usize,
    kept: Vec<Value>,
    /// The order of each kept line, for a log whose lines may arrive out of order.
    orders: Vec<f64>,
}

impl Log {
    /// Returns the line, truncated to the remaining space; `None` after the log has been closed.
    pub fn take(&mut self, mut line: Line) -> Option<Line> {
        if self.bytes > MAX_BYTES || self.lines > MAX_LINES {
            return None;
        }
        self.lines += 1;
        if self.lines > MAX_LINES || self.bytes + line.text.len() > MAX_BYTES {
            let room = line.text.floor_char_boundary(MAX_BYTES - self.bytes);
            self.bytes = MAX_BYTES + 1;
            // Keep the beginning of a line that is too long, but not of a line beyond the limit.
            line.text.truncate(if self.lines > MAX_LINES { 0 } else { room });
            line.text.push_str(&format!("… (log truncated at {MAX_LINES} lines or {} KB)", MAX_BYTES / 1024));
        }
        self.bytes += line.text.len();
        Some(line)
    }

    pub fn keep(&mut self, line: Line) {
        if let Some(line) = self.take(line) {
            self.kept.push(json!({"level": line.level, "text": line.text}));
        }
    }

    /// Keeps a line after those of a lower or the same order.
    pub fn keep_at(&mut self, order: f64, line: Line) {
        let Some(line) = self.take(line) else { return };
        // The line that reports the truncation stays the last one.
        let order = if self.bytes > MAX_BYTES { f64::INFINITY } else { order };
        let at = self.orders.partition_point(|known| *known <= order);
        self.orders.insert(at, order);
        self.kept.insert(at, json!({"level": line.level, "text": line.text}));
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// All lines; `None` if there are none.
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
    fn lines_that_arrive_out_of_order_are_kept_in_order() {
        let mut log = Log::default();
        for (order, text) in [(3.0, "c"), (1.0, "a"), (2.0, "b"), (2.0, "b again")] {
            log.keep_at(order, Line { level: "info".into(), text: text.into() });
        }
        log.keep_at(0.0, Line { level: "info".into(), text: "x".repeat(MAX_BYTES + 1) });
        let value = log.into_value().unwrap();
        let texts: Vec<&str> = value.as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
        assert_eq!(texts[..4], ["a", "b", "b again", "c"]);
        assert!(texts[4].ends_with("64 KB)"), "{}", texts[4]);
    }

    #[test]
    fn a_log_is_truncated_by_lines_or_bytes_and_reports_it() {
        assert_eq!(kept(std::iter::empty()), Vec::<String>::new());
        let many = kept((0..5_000).map(|n| n.to_string()));
        assert_eq!((many.len(), many[999].as_str()), (1_001, "999"));
        assert_eq!(many[1_000], "… (log truncated at 1000 lines or 64 KB)");
        let long = kept((0..100).map(|_| "ä".repeat(1_000)));
        assert_eq!(long.len(), 33);
        assert!(long[32].starts_with("ää") && long[32].ends_with("… (log truncated at 1000 lines or 64 KB)"));
        assert!(long.iter().map(String::len).sum::<usize>() < MAX_BYTES + 100);
    }
}
