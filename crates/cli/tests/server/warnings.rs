//! Warnings: reported wherever a definition is checked or stored.

use crate::harness::Installation;
use serde_json::{Value, json};

fn codes(list: &Value) -> Vec<(&str, &str)> {
    list.as_array().into_iter().flatten().map(|fault| (as_text(&fault["code"]), as_text(&fault["path"]))).collect()
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn warnings_come_beside_faults_and_stop_nothing() {
    let place = Installation::new();
    let server = place.serve();
    let wait = |timeout: Value| json!({"wait_for_webhook": {"timeout": timeout}});
    let suspicious = json!({"name": "w", "tasks": {"hook": wait(json!(3600))}});
    let expected = [("suspicious-duration", "tasks.hook.wait_for_webhook.timeout")];

    let checked = server.api.post("/api/v1/check", &suspicious).is(200).data();
    assert_eq!(codes(&checked["warnings"]), expected);
    let message = checked["warnings"][0]["message"].as_str().unwrap();
    assert_eq!(message, "3600 is 3s600ms, because a bare number is in milliseconds here");
    server.api.post("/api/v1/check", &json!({"name": "w", "tasks": {"hook": wait(json!("1h"))}})).is(204);

    let faulty = json!({"name": "w", "tasks": {"hook": wait(json!(3600)), "b": {"needs": "hok", "sleep": 1}}});
    let problem = server.api.post("/api/v1/check", &faulty).refused(422, "invalid-definition");
    assert_eq!(codes(&problem["warnings"]), expected);
    assert_eq!(codes(&problem["errors"]), [("unknown-step", "tasks.b.needs")]);

    for (method, path, status) in [("POST", "/api/v1/workflows", 201), ("PUT", "/api/v1/workflows/w", 200)] {
        let stored = server.api.call(method, path, &suspicious).is(status).json();
        assert_eq!(stored["data"]["name"], "w");
        assert_eq!(codes(&stored["warnings"]), expected);
    }

    let file = place.data().with_extension("yaml");
    std::fs::write(&file, suspicious.to_string()).unwrap();
    for arguments in [vec!["check", "--json"], vec!["check"]] {
        let output = place.command().args(&arguments).arg(&file).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("suspicious-duration") && text.contains("because a bare number"), "{text}");
    }
}
