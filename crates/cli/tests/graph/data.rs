//! dataQuery nodes on a SQLite file.

use crate::drawn::{graph, server};
use crate::harness::{Api, Installation};
use serde_json::{Value, json};

/// Makes a file of three people and the connection `crm` to it.
fn people(place: &Installation, api: &Api) {
    let file = place.data().parent().unwrap().join("crm.db");
    let made = rusqlite::Connection::open(&file).unwrap();
    made.execute_batch(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        INSERT INTO people VALUES (1, 'Ada', 'London'), (2, 'Bob', 'Rome'), (3, 'Cy', 'Rome');",
    )
    .unwrap();
    let connection = json!({"url": format!("sqlite:{}", file.display()), "write": true});
    api.call("PUT", "/api/v1/connections/crm", &connection).is(200);
}

fn asking(title: &str, config: Value) -> Value {
    let nodes = json!([
        ["start", "start"],
        ["ask", "dataQuery", config],
        ["each", "loop", {"sourceVariable": "found", "itemVariable": "person", "outputVariable": "greeted"}],
        ["greet", "tool", {"tool": "echo", "args": {"hello": "{{ctx.person.name}}"}}],
        ["sorry", "tool", {"tool": "echo", "args": {"why": "{{ctx.found.error.code}}"}, "outputVariable": "sorry"}],
        ["end", "end", {"outputParameters": [{"name": "found", "sourceVariable": "found"},
            {"name": "greeted", "sourceVariable": "greeted"}, {"name": "sorry", "sourceVariable": "sorry.why"}]}],
    ]);
    graph(
        title,
        nodes,
        &["start>ask", "ask>each", "each.loop>greet", "greet>each", "each.done>end", "ask.error>sorry", "sorry>end"],
    )
}

#[test]
fn rows_become_a_variable_that_a_loop_can_walk() {
    let (place, server) = server();
    people(&place, &server.api);
    let sql = "SELECT id, name FROM people WHERE city = :city ORDER BY id";
    let values = json!({"city": "{{ctx.input.city}}"});
    let config = json!({"connection": "crm", "sql": sql, "inputValues": values, "outputVariable": "found"});
    let id = server.api.define(&asking("people", config));
    let run = server.api.finished(&id, &json!({"city": "Rome"}));
    assert_eq!(run["output"]["found"], json!([{"id": 2, "name": "Bob"}, {"id": 3, "name": "Cy"}]), "{run:#}");
    assert_eq!(run["output"]["greeted"].as_array().unwrap().len(), 2);
    let attack = server.api.finished(&id, &json!({"city": "'; DROP TABLE people; --"}));
    assert_eq!(attack["output"]["found"], json!([]), "{attack:#}");
    assert_eq!(
        server.api.finished(&id, &json!({"city": "London"}))["output"]["found"],
        json!([{"id": 1, "name": "Ada"}])
    );
}

#[test]
fn a_query_that_fails_goes_by_the_error_edge() {
    let (place, server) = server();
    people(&place, &server.api);
    for (title, config, code) in [
        ("wrong", json!({"connection": "crm", "sql": "SELECT nothing FROM people"}), "sql_error"),
        ("unknown", json!({"connection": "crn", "sql": "SELECT 1"}), "unknown_connection"),
        ("writes", json!({"connection": "crm", "sql": "DELETE FROM people"}), "read_only"),
        ("saved", json!({"dataQueryID": "q1"}), "unknown_query"),
    ] {
        let mut config = config;
        config["outputVariable"] = json!("found");
        config["maxAttempts"] = json!(1);
        let id = server.api.define(&asking(title, config));
        let run = server.api.finished(&id, &json!({}));
        assert_eq!((&run["status"], &run["output"]["sorry"]), (&json!("completed"), &json!(code)), "{title}: {run:#}");
    }
}

#[test]
fn reading_and_writing_need_their_grants_when_the_step_runs() {
    let (place, server) = server();
    people(&place, &server.api);
    let config = |sql: &str, write: bool| {
        let mut config = json!({"connection": "crm", "sql": sql, "write": write, "outputVariable": "found"});
        config["errorHandling"] = json!("fail_workflow");
        config
    };
    server.api.define(&asking("read", config("SELECT name FROM people", false)));
    server.api.define(&asking("write", config("DELETE FROM people WHERE id = 3 RETURNING name", true)));
    for (user, grants, read, write) in [
        ("none", &["workflow.run", "workflow.read", "tool:*"][..], "failed", "failed"),
        ("reader", &["workflow.run", "workflow.read", "tool:*", "connection:crm"], "completed", "failed"),
        (
            "writer",
            &["workflow.run", "workflow.read", "tool:*", "connection:crm", "connection:crm:write"],
            "completed",
            "completed",
        ),
    ] {
        let api = server.api.new_user(user, grants);
        for (title, status) in [("read", read), ("write", write)] {
            let run = api.finished(title, &json!({}));
            assert_eq!(run["status"], status, "{user} {title}: {run:#}");
            if status == "failed" {
                assert_eq!(run["error"]["code"], "forbidden", "{user} {title}: {run:#}");
            }
        }
    }
}

#[test]
fn a_saved_query_is_looked_up_when_the_step_runs() {
    let (place, server) = server();
    people(&place, &server.api);
    let config =
        json!({"dataQueryID": "by-city", "inputValues": {"city": "{{ctx.input.city}}"}, "outputVariable": "found"});
    let id = server.api.define(&asking("saved-people", config));
    let save = |sql: &str| {
        let query = json!({"connection": "crm", "sql": sql, "params": {"city": "London", "least": 1}});
        server.api.call("PUT", "/api/v1/queries/by-city", &query).is(200);
    };
    save("SELECT name FROM people WHERE city = :city AND id >= :least ORDER BY id");
    let found = |input: Value| server.api.finished(&id, &input)["output"]["found"].clone();
    assert_eq!(found(json!({"city": "Rome"})), json!([{"name": "Bob"}, {"name": "Cy"}]));
    save("SELECT id, name FROM people WHERE city = :city AND id > :least + 1 ORDER BY id");
    assert_eq!(found(json!({"city": "Rome"})), json!([{"id": 3, "name": "Cy"}]));
    let rome = json!({"name": "london", "tasks": {"ask": {"query": {"saved": "by-city", "params": {"least": 0}}},
        "all": {"query": {"saved": "by-city"}}}});
    server.api.define(&rome);
    let run = server.api.finished("london", &json!({}));
    assert_eq!((&run["tasks"]["ask"]["output"], &run["tasks"]["all"]["output"]), (&json!([]), &json!([])), "{run:#}");
    server.api.delete("/api/v1/queries/by-city").is(204);
    let gone = server.api.finished(&id, &json!({"city": "Rome"}));
    assert_eq!(gone["output"]["sorry"], "unknown_query", "{gone:#}");
}
