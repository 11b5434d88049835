//! The commands that the documents show are run, block by block, with a real shell against a real server.
//!
//! A block runs with everything at hand that its page speaks of: workflows, a run with open steps in `$RUN`, files. What a
//! command says is not compared; it must be understood. So no call may be answered with 4xx, except 409 (the state does not
//! allow it now) and calls with a placeholder (`…`), and no `stepwell` may exit with 2, which means a wrong command line.

use crate::harness::{Installation, Server};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Pages whose commands need no more than a server. `deploy/` reads deployment.md; mcp-servers.md needs another server.
const PAGES: [&str; 10] = [
    "docs/approvals.md",
    "docs/identity.md",
    "docs/live.md",
    "docs/mcp.md",
    "docs/notifications.md",
    "docs/query.md",
    "docs/secrets.md",
    "docs/server.md",
    "docs/testing.md",
    "docs/triggers.md",
];
/// A block with a line that begins like this builds something, needs another program, or does not end.
const LEFT_OUT: [&str; 5] = ["make ", "pipx ", "claude ", "stepwell serve", "stepwell run --resume"];

/// `api`, `curl` and `stepwell` as in the documents, but each writes down how it ended.
const PRELUDE: &str = r#"
set -uo pipefail
curl() {
  local all outside=
  for word in "$@"; do case "$word" in https://*) outside=yes ;; esac; done
  if [ -n "$outside" ]; then return; fi
  # Streams do not end, and are cut off.
  all=$(command curl --max-time 3 "$@" -w '\n%{http_code}')
  echo "${all##*$'\n'} $*" | tr '\n' ' ' >> "$OUT"; echo >> "$OUT"
  echo "${all%$'\n'*}"
}
api() { curl -sS -H "Authorization: Bearer $KEY" "$@"; }
stepwell() { local code=0; "$STEPWELL" "$@" || code=$?; echo "exit $code stepwell $*" >> "$OUT"; }
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The blocks of shell commands of a page, with the line of each.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut found = Vec::new();
    let mut inside: Option<(usize, String)> = None;
    for (n, line) in text.lines().enumerate() {
        match &mut inside {
            Some(_) if line.starts_with("```") => found.extend(inside.take()),
            // The server of the test stands in for the one of the documents.
            Some((_, block)) if !line.starts_with("api() {") && !line.starts_with("API=") => {
                *block += &format!("{line}\n")
            }
            None if line == "```sh" => inside = Some((n + 1, String::new())),
            _ => {}
        }
    }
    found.retain(|(_, block)| !block.lines().any(|line| LEFT_OUT.iter().any(|left_out| line.starts_with(left_out))));
    found
}

/// What pages speak of, made anew before each block.
fn prepare(place: &Installation, server: &Server) -> String {
    let api = &server.api;
    let quote = definition("README.md", "quote");
    let folder = place.data().parent().unwrap().to_path_buf();
    std::fs::write(folder.join("quote.yaml"), &quote).unwrap();
    for name in ["slack-url.txt", "mail-key.txt"] {
        std::fs::write(folder.join(name), "https://hooks.slack.example/T000/B000/a-long-secret\n").unwrap();
    }
    std::fs::write(folder.join("by-city.sql"), "select * from people where city = :city and id >= :least\n").unwrap();
    let examples = folder.join("examples");
    if !examples.exists() {
        std::os::unix::fs::symlink(root().join("examples"), examples).unwrap();
    }
    // No call of a step or of a channel leaves this machine.
    api.call("PUT", "/api/v1/policies/offline", &json!({"calls": "host:*", "effect": "deny"})).is(200);
    let pages = [
        ("docs/triggers.md", "digest"),
        ("docs/triggers.md", "on-push"),
        ("docs/triggers.md", "launch"),
        ("docs/mcp.md", "refund"),
        ("README.md", "quote"),
    ];
    for (page, name) in pages {
        let text = definition(page, name);
        let made = api.send("PUT", &format!("/api/v1/workflows/{name}"), &[], Some(text.into()));
        assert!(made.status < 300, "{page}: {name}: {}", made.text());
    }
    let hello = std::fs::read(root().join("examples/hello.yaml")).unwrap();
    api.send("PUT", "/api/v1/workflows/hello", &[], Some(hello));
    api.post("/api/v1/users", &json!({"name": "ann", "roles": ["runner", "approver"]}));
    api.call("PATCH", "/api/v1/users/ann", &json!({"disabled": false, "roles": ["runner", "approver"]}));
    api.call(
        "PUT",
        "/api/v1/workflows/all",
        &json!({"name": "all", "tasks": {
        "gate": {"approval": {"message": "well?"}}, "paid": {"wait_for_webhook": {}}, "charge": {"sleep": "1h"}}}),
    );
    let run = api.trigger("all", &json!({}));
    api.step(&run, "gate", "waiting");
    run
}

/// A definition of this name on a page.
fn definition(page: &str, name: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let mut named = blocks.filter(|block| block.lines().any(|line| line == format!("name: {name}")));
    named.next().unwrap_or_else(|| panic!("{page} has no {name}")).to_string() + "\n"
}

/// The commands of a block that ended badly.
fn faults(log: &str) -> Vec<String> {
    let wrong = |line: &&str| {
        let mut words = line.split(' ');
        match words.next().unwrap_or_default() {
            "exit" => words.next() == Some("2"),
            status => {
                let refused = status.starts_with('4') && status != "409" && !line.contains('…');
                refused || status.starts_with('5') || status == "000" || status == "405"
            }
        }
    };
    log.lines().filter(wrong).map(str::to_string).collect()
}

#[test]
fn every_command_of_the_documents_is_understood() {
    let place = Installation::new();
    let server = place.serve();
    let folder = place.data().parent().unwrap().to_path_buf();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in PAGES {
        for (line, block) in blocks(page) {
            let run = prepare(&place, &server);
            let out = folder.join("log");
            std::fs::write(&out, "").unwrap();
            let mut command = place.program("bash");
            command.current_dir(&folder).env("OUT", &out).env("STEPWELL", env!("CARGO_BIN_EXE_stepwell"));
            command.env("HOME", &folder).env("API", format!("{}/api/v1", server.url)).env("RUN", &run);
            command.env("KEY", server.api.key.as_deref().unwrap()).env("TOKEN", "a-long-token").env("SECRET", "s3cret");
            command.env("ADDRESS", format!("{}/in/none-…", server.url));
            // Where the first start on a laptop keeps the keys.
            let keys = folder.join(".local/share/stepwell");
            std::fs::create_dir_all(&keys).unwrap();
            std::fs::write(keys.join("admin.key"), server.api.key.as_deref().unwrap()).unwrap();
            std::fs::write(keys.join("agent.key"), server.api.key.as_deref().unwrap()).unwrap();
            let script = PRELUDE.to_string() + &block.replace("http://127.0.0.1:7070", &server.url);
            let done = command.args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
            let log = std::fs::read_to_string(&out).unwrap();
            count += log.lines().count();
            let mut all = faults(&log);
            if !done.status.success() && all.is_empty() {
                all.push(format!("{}: {}", done.status, String::from_utf8_lossy(&done.stderr)));
            }
            let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
            wrong.extend(all.into_iter().map(|fault| format!("{page}:{line}: {fault}\n{said}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 90, "only {count} commands were run");
}
