//! Saved queries through the API and the command line: who may set and use them, and errors.

use crate::harness::Installation;
use serde_json::{Value, json};

/// With a connection `crm` to a file that has one number in it.
fn crm(place: &Installation) -> Value {
    let file = place.data().parent().unwrap().join("crm.db");
    let made = rusqlite::Connection::open(&file).unwrap();
    made.execute_batch("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1);").unwrap();
    json!({"url": format!("sqlite:{}", file.display()), "write": true})
}

#[test]
fn a_saved_query_is_made_shown_changed_and_removed_by_administrators() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    assert_eq!(api.get("/api/v1/queries").is(200).data(), json!([]));
    let full = json!({"connection": "crm", "sql": "select :n", "params": {"n": 1}, "write": true, "rows": 5});
    let made = api.call("PUT", "/api/v1/queries/one", &full).is(200).data();
    for (field, value) in full.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    assert_eq!(api.get("/api/v1/queries/one").is(200).data(), made);
    let less = json!({"connection": "crm", "sql": "select 1"});
    let changed = api.call("PUT", "/api/v1/queries/one", &less).is(200).data();
    assert_eq!((&changed["id"], &changed["write"], &changed["params"]), (&made["id"], &json!(false), &json!({})));
    assert_eq!(api.get("/api/v1/queries").is(200).data(), json!([changed]));
    for (query, field) in [
        (json!({"connection": "crm", "sql": " "}), "sql"),
        (json!({"connection": "", "sql": "select 1"}), "connection"),
        (json!({"connection": "crm", "sql": "select 1", "rows": 0}), "rows"),
        (json!({"connection": "crm", "sql": "select 1", "parms": {}}), "parms"),
        (json!({"sql": "select 1"}), "connection"),
    ] {
        let problem = api.call("PUT", "/api/v1/queries/two", &query).is(422).json();
        assert!(problem.to_string().contains(field), "{problem:#}");
    }
    let ann = api.new_user("ann", &["workflow.read", "workflow.run", "workflow.define", "connection:*"]);
    ann.get("/api/v1/queries").refused(403, "forbidden");
    ann.call("PUT", "/api/v1/queries/one", &less).refused(403, "forbidden");
    ann.delete("/api/v1/queries/one").refused(403, "forbidden");
    api.delete("/api/v1/queries/one").is(204);
    api.get("/api/v1/queries/one").refused(404, "not-found");
    let trail = api.get("/api/v1/audit?target=one").is(200).data();
    let actions: Vec<&str> = trail.as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["query.remove", "query.put", "query.put"]);
}

#[test]
fn a_step_needs_the_rights_to_what_the_saved_query_uses() {
    let place = Installation::new();
    let server = place.serve();
    let api = &server.api;
    api.call("PUT", "/api/v1/connections/crm", &crm(&place)).is(200);
    let add = json!({"connection": "crm", "sql": "update t set n = n + :by", "params": {"by": 1}, "write": true});
    api.call("PUT", "/api/v1/queries/add", &add).is(200);
    api.define(
        &json!({"name": "add", "tasks": {"it": {"query": {"saved": "add", "params": {"by": 2}}, "retries": 0}}}),
    );
    for (name, grants, expected) in [
        ("ann", &["workflow.run", "workflow.read"][..], "connection:crm "),
        ("ben", &["workflow.run", "workflow.read", "connection:crm"], "connection:crm:write"),
    ] {
        let run = api.new_user(name, grants).finished("add", &json!({}));
        let error = &run["tasks"]["it"]["error"];
        assert_eq!(error["code"], "forbidden", "{run:#}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    let cy = api.new_user("cy", &["workflow.run", "workflow.read", "connection:crm", "connection:crm:write"]);
    assert_eq!(cy.finished("add", &json!({}))["tasks"]["it"]["output"], json!({"row_count": 1}));
    // A policy on the connection holds it, and an approval of the call as the step has it lets it go.
    let policy = json!({"calls": "connection:crm", "effect": "require_approval"});
    api.call("PUT", "/api/v1/policies/crm", &policy).is(200);
    let run = cy.trigger("add", &json!({}));
    api.step(&run, "it", "waiting");
    let asked = api.get(&format!("/api/v1/runs/{run}/steps/it/approval")).is(200).data();
    let answer = json!({"digest": asked["digest"]});
    api.post(&format!("/api/v1/runs/{run}/steps/it/approve"), &answer).is(200);
    assert_eq!(api.end(&run)["tasks"]["it"]["output"], json!({"row_count": 1}));
}

#[test]
fn the_command_line_saves_lists_and_deletes_on_a_directory_and_a_server() {
    let place = Installation::new();
    let check = || {
        let set =
            ["query", "set", "names", "--connection", "crm", "--param", "least=2", "--param", "city=Rome", "--json"];
        let saved: Value = serde_json::from_str(&place.stepwell_with(&set, &[], "select :least,\n  :city\n")).unwrap();
        assert_eq!(saved["params"], json!({"least": 2, "city": "Rome"}), "{saved:#}");
        let listed = place.stepwell(&["query", "list"]);
        assert!(listed.contains("names  crm  reads only") && listed.contains("select :least, :city"), "{listed}");
        assert!(place.stepwell(&["query", "rm", "names"]).contains("names is deleted"));
        assert_eq!(place.stepwell(&["query", "list"]), "");
        assert!(place.stepwell(&["query", "delete", "names"]).contains("no query"));
    };
    let server = place.serve();
    check();
    server.stop();
    check();
}
