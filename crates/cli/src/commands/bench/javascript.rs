//! The JavaScript workload: a small function over 2 KB of context, so that the round trip dominates.

use serde_json::{Value, json};

const CODE: &str = "
    const open = ctx.input.items.filter(item => item.open);
    return { count: open.length, total: open.reduce((sum, item) => sum + item.price, 0) };";

pub fn step() -> Value {
    json!({"javascript": CODE})
}

/// About 2 KB of JSON.
pub fn input() -> Value {
    let item =
        |n: u32| json!({"id": n, "name": format!("item number {n}"), "price": n * 3, "open": n.is_multiple_of(2)});
    json!({"items": (0..35).map(item).collect::<Vec<_>>()})
}
