//! Conversion of types in both directions.

use crate::harness::{both, check, postgres, sqlite};
use serde_json::{Value, json};

#[tokio::test]
async fn postgresql_values_become_the_matching_json() {
    let (schema, harness) = postgres();
    schema.execute("CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE DOMAIN positive AS int CHECK (value > 0)");
    for (sql, expected) in [
        ("NULL::int", Value::Null),
        ("true", json!(true)),
        ("(-7)::int2", json!(-7)),
        ("9007199254740992::int8", json!(9_007_199_254_740_992u64)),
        ("9007199254740993::int8", json!("9007199254740993")),
        ("0.1::float4", json!(0.1)),
        ("1e300::float8", json!(1e300)),
        ("'NaN'::float8", json!("NaN")),
        ("10.50::numeric(10, 2)", json!(10.5)),
        ("0.00001::numeric", json!(0.00001)),
        ("123456789012345678901234567890.5::numeric", json!("123456789012345678901234567890.5")),
        ("(-10000.0001)::numeric", json!(-10000.0001)),
        ("'NaN'::numeric", json!("NaN")),
        ("'text'::varchar(9)", json!("text")),
        ("'bad'::mood", json!("bad")),
        ("5::positive", json!(5)),
        ("'7d444840-9dc0-11d1-b245-5ffdce74fad2'::uuid", json!("7d444840-9dc0-11d1-b245-5ffdce74fad2")),
        ("'{\"a\": [1, null]}'::jsonb", json!({"a": [1, null]})),
        ("'[1]'::json", json!([1])),
        ("'\\x00ff10'::bytea", json!("AP8Q")),
        ("'2026-02-22 10:00:00.5+02'::timestamptz", json!("2026-02-22T08:00:00.5Z")),
        ("'1999-12-31 23:59:59.999999'::timestamp", json!("1999-12-31T23:59:59.999999")),
        ("'infinity'::timestamptz", json!("infinity")),
        ("'1970-01-01'::date", json!("1970-01-01")),
        ("'10:20:30'::time", json!("10:20:30")),
        ("ARRAY[[1, 2], [3, NULL]]", json!([[1, 2], [3, null]])),
        ("ARRAY['a', 'b,\"']", json!(["a", "b,\""])),
        ("'{}'::text[]", json!([])),
        ("ARRAY['good']::mood[]", json!(["good"])),
    ] {
        assert_eq!(harness.one(&format!("SELECT {sql} AS x"), json!([])).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn json_becomes_what_the_statement_expects() {
    let (schema, harness) = postgres();
    schema.execute("CREATE TYPE mood AS ENUM ('good', 'bad')");
    for (ty, value) in [
        ("int4", json!(-5)),
        ("int8", json!("9007199254740993")),
        ("numeric", json!("123456789012345678901234567890.5")),
        ("float8", json!(2.5)),
        ("text", json!("it's; DROP")),
        ("bool", json!(false)),
        ("uuid", json!("7d444840-9dc0-11d1-b245-5ffdce74fad2")),
        ("timestamptz", json!("2026-02-22T08:00:00Z")),
        ("date", json!("2026-02-22")),
        ("jsonb", json!({"deep": [{"er": null}], "s": "\"\\"})),
        ("jsonb", json!("just text")),
        ("jsonb", json!([1, 2])),
        ("text[]", json!(["a", "b,c", "d\"e\\f", "NULL", "", "{}", null])),
        ("int4[]", json!([[1, 2], [3, 4]])),
        ("jsonb[]", json!([[1], {"a": 1}])),
        ("bytea", json!("AP8Q")),
        ("mood", json!("bad")),
        ("int4", Value::Null),
    ] {
        assert_eq!(harness.one(&format!("SELECT $1::{ty} AS x"), json!([value])).await, value, "{ty}");
    }
    // A list or an object becomes JSON text, and an integer may be written as a float.
    assert_eq!(harness.one("SELECT $1::text AS x", json!([{"a": [1]}])).await, json!("{\"a\":[1]}"));
    assert_eq!(harness.one("SELECT $1::int AS x", json!([5.0])).await, json!(5));
}

#[tokio::test]
async fn an_invalid_parameter_is_named() {
    let (_schema, harness) = postgres();
    for (ty, value, part) in [
        ("int4", json!(3_000_000_000u64), "$2 does not fit: 3000000000 cannot be converted to int4"),
        ("int4", json!(1.5), "$2 does not fit: 1.5"),
        ("int4", json!(true), "true or false cannot be converted to int4"),
        ("int4", json!({}), "an object cannot be"),
        ("bool", json!(1), "a number cannot be converted to bool"),
        ("date", json!([1]), "a list cannot be converted to date"),
        ("bytea", json!("not base64!"), "bytes must be base64"),
        ("text", json!("a\u{0}b"), "must not contain NUL characters"),
        ("int4", json!("five"), "$2 does not fit: invalid input syntax for type integer: \"five\""),
        ("uuid", json!("nonsense"), "$2 does not fit: invalid input syntax for type uuid"),
        ("timestamptz", json!("yesterweek"), "invalid input syntax for type timestamp"),
    ] {
        let failure = harness.query(&format!("SELECT $1::int, $2::{ty} AS x"), json!([1, value])).await.unwrap_err();
        check(&failure, "bad_param", part);
        assert!(!failure.retryable);
    }
}

#[tokio::test]
async fn an_unsupported_type_is_refused_before_anything_happens() {
    let (schema, harness) = postgres();
    schema.execute("CREATE TABLE spans (at int4range)");
    let failure = harness.write("INSERT INTO spans VALUES ('[1,2)') RETURNING at", json!([])).await.unwrap_err();
    check(&failure, "bad_query", "the column \"at\" cannot be read: its type int4range");
    assert_eq!(harness.one("SELECT count(*) FROM spans", json!([])).await, json!(0));
    assert_eq!(harness.one("SELECT '[1,2)'::int4range::text AS x", json!([])).await, json!("[1,2)"));
    // A year beyond the range of the calendar.
    let failure = harness.query("SELECT '100000-01-01'::timestamptz AS far", json!([])).await.unwrap_err();
    check(&failure, "bad_query", "the column \"far\" cannot be read");
    assert_eq!(harness.one("SELECT 1 AS x", json!([])).await, json!(1));
}

#[tokio::test]
async fn sqlite_values_come_as_they_are_stored() {
    let (_directory, harness) = sqlite("");
    for (value, expected) in [
        (Value::Null, Value::Null),
        (json!(true), json!(1)),
        (json!(-5), json!(-5)),
        (json!(i64::MAX), json!("9223372036854775807")),
        (json!(2.5), json!(2.5)),
        (json!("it's"), json!("it's")),
        (json!({"a": [1]}), json!("{\"a\":[1]}")),
    ] {
        assert_eq!(harness.one("SELECT $1 AS x", json!([value])).await, expected, "{value}");
        assert_eq!(harness.one("SELECT :v AS x", json!({"v": value})).await, expected, "{value}");
    }
    assert_eq!(harness.one("SELECT x'00ff10' AS x", json!([])).await, json!("AP8Q"));
    assert_eq!(harness.one("SELECT 9e999 AS x", json!([])).await, json!("Infinity"));
    let failure = harness.query("SELECT ? AS x", json!([u64::MAX])).await.unwrap_err();
    check(&failure, "bad_param", "$1 does not fit");
    let failure = harness.query("SELECT CAST(x'ff' AS text) AS x", json!([])).await.unwrap_err();
    check(&failure, "bad_query", "not UTF-8");
}

#[tokio::test]
async fn rows_keep_the_order_of_columns_and_a_statement_without_rows_returns_a_count() {
    let (_schema, _directory, harnesses) = both();
    for harness in harnesses {
        let body = harness.query("SELECT name, id FROM t ORDER BY id DESC", json!([])).await.unwrap();
        assert_eq!(body.to_string(), r#"[{"name":"two","id":2},{"name":"one","id":1}]"#);
        let none = harness.query("SELECT name FROM t WHERE id = $1", json!([9])).await.unwrap();
        assert_eq!(none, json!([]));
        let changed = harness.write("UPDATE t SET name = upper(name)", json!([])).await.unwrap();
        assert_eq!(changed, json!({"row_count": 2}));
        let given = harness.write("DELETE FROM t WHERE id = $1 RETURNING name", json!([2])).await.unwrap();
        assert_eq!(given, json!([{"name": "TWO"}]));
        let made = harness.write("CREATE TABLE other (x int)", json!([])).await.unwrap();
        assert_eq!(made, json!({"row_count": 0}));
        let failure = harness.query("SELECT 1 AS a, 2 AS a", json!([])).await.unwrap_err();
        check(&failure, "bad_query", "two columns are called \"a\"");
    }
}
