//! Parameters are values, whatever they contain.

use crate::harness::{both, check};
use serde_json::json;

#[tokio::test]
async fn sql_in_a_parameter_is_only_text() {
    let (_schema, _directory, harnesses) = both();
    for harness in harnesses {
        for attack in [
            "'; DROP TABLE t; --",
            "1 OR 1=1",
            "$1",
            ":name",
            "\\'; DELETE FROM t; --",
            "$$; COMMIT; DROP TABLE t; $$",
            "one' UNION SELECT name FROM t --",
            "\u{2019}; --",
            "%s {} {{x}}",
        ] {
            let found = harness.query("SELECT id FROM t WHERE name = $1", json!([attack])).await.unwrap();
            assert_eq!(found, json!([]), "{attack}");
            let back =
                harness.query("SELECT CAST(:name AS text) AS x, ':name' AS y", json!({"name": attack})).await.unwrap();
            assert_eq!(back[0], json!({"x": attack, "y": ":name"}));
            harness.write("UPDATE t SET name = $1 WHERE id = 1", json!([attack])).await.unwrap();
            assert_eq!(harness.one("SELECT name FROM t WHERE id = 1", json!([])).await, json!(attack));
        }
        assert_eq!(harness.one("SELECT count(*) FROM t", json!([])).await, json!(2));
    }
}

#[tokio::test]
async fn missing_surplus_and_unknown_parameters_are_reported() {
    let (_schema, _directory, harnesses) = both();
    for harness in harnesses {
        let by_number = "SELECT id FROM t WHERE id = $1";
        let failure = harness.query(by_number, json!([])).await.unwrap_err();
        check(&failure, "bad_query", "the statement has 1 parameter, but `params` has 0");
        let failure = harness.query(by_number, json!([1, 2])).await.unwrap_err();
        check(&failure, "bad_query", "`params` has 2");
        let by_name = "SELECT id FROM t WHERE id = :id";
        let failure = harness.query(by_name, json!({"ID": 1})).await.unwrap_err();
        check(&failure, "bad_query", "a parameter `:id`, but `params` has no \"id\"");
        let found = harness.query(by_name, json!({"id": 2, "more": [1]})).await.unwrap();
        assert_eq!(found, json!([{"id": 2}]));
        let failure = harness.query(by_name, json!("x")).await.unwrap_err();
        check(&failure, "bad_query", "`params` must be a list or an object");
        assert!(harness.query(by_name, json!([1])).await.is_err());
    }
}
