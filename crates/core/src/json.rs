//! Measures JSON text before a tree is built from it: a tree takes many times the size of its text.
//!
//! Not here: parsing. Text that is not JSON gets numbers too; the parser reads no more values of it than were counted.

/// Upper bounds for the tree of a JSON text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Measure {
    /// Lists, objects and plain values. An empty list or object counts twice.
    pub values: usize,
    /// Objects alone, which cost more than other values.
    pub objects: usize,
    /// Levels of lists and objects, and the plain value in the innermost.
    pub depth: usize,
}

/// Reads the text once, without allocating.
pub fn measure(text: &[u8]) -> Measure {
    let mut found = Measure { values: 1, objects: 0, depth: 1 };
    let mut open = 1_usize;
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_string(&mut rest),
            b',' => found.values += 1,
            b'[' | b'{' => {
                found.values += 1;
                found.objects += usize::from(*byte == b'{');
                open += 1;
                found.depth = found.depth.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    found
}

fn skip_string(rest: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(rest.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn check(text: &str, values: usize, objects: usize, depth: usize) {
        assert_eq!(measure(text.as_bytes()), Measure { values, objects, depth }, "{text}");
    }

    #[test]
    fn values_are_counted_without_what_strings_contain() {
        check("", 1, 0, 1);
        check("17", 1, 0, 1);
        check("[0, 0,0]", 4, 0, 2);
        check(r#"{"a": [1, {"b,[{": "]\",["}], "c": "\\"}"#, 6, 2, 4);
        check("[[[[", 5, 0, 5);
    }

    #[test]
    fn no_tree_has_more_than_was_measured() {
        fn count(value: &Value) -> (usize, usize) {
            let inner: Vec<(usize, usize)> = match value {
                Value::Array(list) => list.iter().map(count).collect(),
                Value::Object(fields) => fields.values().map(count).collect(),
                _ => Vec::new(),
            };
            let deepest = inner.iter().map(|(_, depth)| *depth).max().unwrap_or_default();
            (1 + inner.iter().map(|(values, _)| values).sum::<usize>(), 1 + deepest)
        }
        for text in ["[]", "{}", "[[],{}]", r#"{"":{"":[null,true,1e3,"x\u0022,"]}}"#, r#"["\\","[",","]"#] {
            let (values, depth) = count(&serde_json::from_str(text).unwrap());
            let found = measure(text.as_bytes());
            assert!(found.values >= values && found.depth >= depth, "{text}: {found:?}");
        }
    }
}
