//! Bounds on what a result of a tool brings into an agent's context.

use serde_json::{Map, Value, json};
use std::io::Write;

/// Maximum bytes of a text.
pub const TEXT: usize = 8_000;
/// Maximum bytes of structured content, unless the caller asks for more.
pub const STRUCTURED: usize = 16_000;
/// The most that a caller can ask for.
pub const MOST: usize = 200_000;
/// What a note about something left out takes.
const NOTE: usize = 60;

/// The value within a number of bytes of JSON. Large parts are cut first, so that small fields stay whole.
pub fn fit(value: Value, most: usize) -> Value {
    if size(&value) <= most {
        return value;
    }
    match value {
        Value::String(text) => Value::String(cut(&text, most.saturating_sub(2))),
        Value::Array(items) => list(items, most),
        Value::Object(fields) => object(fields, most),
        other => other,
    }
}

/// Text within a number of bytes of JSON, with a note if something is missing.
pub fn cut(text: &str, most: usize) -> String {
    if escaped(text) <= most {
        return text.to_owned();
    }
    let keep = most.saturating_sub(NOTE);
    let mut used = 0;
    let start: String = text
        .chars()
        .take_while(|c| {
            used += escaped(c.encode_utf8(&mut [0; 4]));
            used <= keep
        })
        .collect();
    format!("{start}… (cut; {} bytes in all)", text.len())
}

fn escaped(text: &str) -> usize {
    size(&Value::from(text)).saturating_sub(2)
}

fn list(items: Vec<Value>, most: usize) -> Value {
    let count = items.len();
    let (mut kept, mut used) = (Vec::new(), 2);
    for item in items {
        // One large item leaves room for others.
        let item = fit(item, (most / 2).max(NOTE));
        used += size(&item) + 1;
        if used + NOTE > most {
            break;
        }
        kept.push(item);
    }
    if kept.len() < count {
        kept.push(json!(format!("… and {} more", count - kept.len())));
    }
    Value::Array(kept)
}

fn object(fields: Map<String, Value>, most: usize) -> Value {
    let overhead = |name: &String| escaped(name) + 4;
    let mut sizes: Vec<(usize, &String)> = fields.iter().map(|(name, value)| (size(value), name)).collect();
    sizes.sort_unstable();
    let names: usize = fields.keys().map(overhead).sum();
    if names + sizes.len().saturating_mul(NOTE) > most.max(sizes.iter().map(|(size, _)| size).sum::<usize>().min(most))
    {
        return first_fields(fields, most);
    }
    // Small fields stay whole; what they leave is shared by the large ones.
    let (mut left, mut count, mut share) = (most.saturating_sub(names + 2), sizes.len(), 0);
    for (size, _) in &sizes {
        share = left / count.max(1);
        if *size > share {
            break;
        }
        left -= size;
        count -= 1;
    }
    fields.into_iter().map(|(name, value)| (name, fit(value, share.max(NOTE)))).collect()
}

/// So many fields that their names alone are too much: the first of them.
fn first_fields(fields: Map<String, Value>, most: usize) -> Value {
    let count = fields.len();
    let (mut kept, mut used) = (Map::new(), 2 + NOTE);
    for (name, value) in fields {
        let value = fit(value, (most / 8).max(NOTE));
        used += escaped(&name) + 4 + size(&value);
        if used > most {
            break;
        }
        kept.insert(name, value);
    }
    kept.insert("…".into(), json!(format!("{} more", count - kept.len())));
    Value::Object(kept)
}

/// The bytes of a value as JSON.
pub fn size(value: &Value) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, most: usize) -> Value {
        let fitted = fit(value.clone(), most);
        assert!(size(&fitted) <= most, "{} of {most}: {fitted}", size(&fitted));
        assert_eq!(fit(value.clone(), size(&value)), value);
        fitted
    }

    #[test]
    fn what_is_large_is_cut_and_what_is_small_stays() {
        let large = json!({"run_id": "run_1", "status": "failed", "output": {"text": "x".repeat(250_000), "ok": true},
            "tasks": {"a": {"status": "success", "output": ["y".repeat(90_000), "z".repeat(90_000)]}}});
        let fitted = check(large, STRUCTURED);
        assert_eq!((&fitted["run_id"], &fitted["output"]["ok"]), (&json!("run_1"), &json!(true)));
        assert_eq!(fitted["tasks"]["a"]["status"], "success");
        assert!(fitted["output"]["text"].as_str().unwrap().ends_with("(cut; 250000 bytes in all)"));
        assert!(size(&fitted) > STRUCTURED / 2, "{}", size(&fitted));
    }

    #[test]
    fn many_items_many_fields_and_wide_characters_fit_too() {
        check(json!((0..100_000).collect::<Vec<u32>>()), 16_000);
        check((0..5_000).map(|n| (format!("step-{n}"), json!({"status": "success"}))).collect(), 16_000);
        check(json!({"text": "\u{1}\"\\é日🚀".repeat(10_000)}), 8_000);
        let mut deep = json!("x".repeat(50_000));
        for _ in 0..100 {
            deep = json!([deep]);
        }
        // Half of the room goes to each level.
        assert!(size(&fit(deep, 16_000)) <= 16_000);
    }
}
