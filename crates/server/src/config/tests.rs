//! Tests of the file format, the environment variables, and their error messages.

use super::*;

fn faults(text: &str) -> Vec<String> {
    Config::read(text, "s.yaml").unwrap_err()
}

fn refused(text: &str, expected: &str) {
    let faults = faults(text);
    assert!(faults.len() == 1 && faults[0].contains(expected), "{text}: {faults:#?}");
}

#[test]
fn an_empty_file_gives_the_defaults() {
    for text in ["", "\n", "# listen: 0.0.0.0:1\n\n  # slots: 3\n", "{}"] {
        assert_eq!(Config::read(text, "s.yaml").unwrap(), Config::default(), "{text:?}");
    }
    let config = Config::default();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7070");
    assert_eq!((config.slots.get(), config.drain, config.limits.body), (1_000, Millis::from_secs(30), 10 << 20));
    assert_eq!(config.plans[&config.default_plan], Plan::UNLIMITED);
}

#[test]
fn a_displayed_configuration_reads_back_as_the_same() {
    let text = "listen: '[::1]:0'\nslots_per_organisation: 4\nlimits: {requests_per_second: 5, body: 1KB}\n\
                cors: {origins: ['https://a.example']}\nplans: {team: {workflows: 0}}\ndrain: 90s\n";
    for config in [Config::default(), Config::read(text, "s.yaml").unwrap()] {
        let shown = serde_json::to_string(&config).unwrap();
        assert_eq!(Config::read(&shown, "s.json").unwrap(), config, "{shown}");
    }
}

#[test]
fn every_key_is_read() {
    let text = r#"
listen: 10.0.0.1:80
data: /var/lib/stepwell
master_key_file: /run/master
database:
  url: postgres://ann:s3cret@db/flows
  listen_url: postgres://ann:s3cret@direct/flows
  writers: 3
  readers: 5
  prepared: false
  unsafe_settings: true
  ca_file: /etc/ca.pem
node: {name: north-1, lease: 2s}
public_url: https://flows.example.com/
insecure_remote: true
hosts: [Flows.Internal, "alias:8080"]
cors: {origins: ["https://App.example.com", "http://localhost:5173"]}
log: {format: json, level: debug}
slots: 7
slots_per_organisation: 3
descendants_per_run: 200
drain: 1m
private_addresses: true
extra_ca_file: /etc/private-ca.pem
limits:
  body: 512KB
  depth: 9
  requests_per_second: 50
  burst: 200
  connections: 11
  header_timeout: 2s
  body_timeout: 1.5
  live_streams: 12
plans:
  free: {workflows: unlimited, cron: true}
  team: {tasks_per_workflow: 30, concurrent_runs: 4, executions_per_month: 100}
default_plan: team
otlp: {endpoint: "http://127.0.0.1:4318/", headers: {Authorization: Bearer abc}, service_name: flows}
metrics: {token: abcdef}
"#;
    let config = Config::read(text, "s.yaml").unwrap();
    assert_eq!(config.listen.to_string(), "10.0.0.1:80");
    assert_eq!(config.data, Some("/var/lib/stepwell".into()));
    let expected = PostgresOptions {
        url: "postgres://ann:s3cret@db/flows".into(),
        listen_url: Some("postgres://ann:s3cret@direct/flows".into()),
        writers: 3,
        readers: 5,
        lease: Duration::from_secs(2),
        prepared: false,
        unsafe_settings: true,
        ca_file: Some("/etc/ca.pem".into()),
    };
    assert_eq!(config.location("/ignored".into()), Location::Postgres(expected));
    assert_eq!(config.node.name.as_deref(), Some("north-1"));
    assert_eq!(config.public_url(config.listen), "https://flows.example.com");
    assert_eq!(config.hosts, ["flows.internal", "alias"]);
    assert_eq!(config.cors.origins, ["https://app.example.com", "http://localhost:5173"]);
    assert_eq!(config.log, Log { format: LogFormat::Json, level: Level::Debug });
    assert_eq!((config.slots.get(), config.slots_per_organisation.map(NonZeroU32::get)), (7, Some(3)));
    assert_eq!(config.master_key_file, Some("/run/master".into()));
    assert_eq!(config.descendants_per_run.get(), 200);
    assert_eq!(config.drain, Millis::from_secs(60));
    assert!(config.private_addresses());
    assert_eq!(config.extra_ca_file, Some("/etc/private-ca.pem".into()));
    let limits = &config.limits;
    assert_eq!((limits.body, limits.depth.get(), limits.connections.get()), (512 * 1024, 9, 11));
    assert_eq!((limits.requests_per_second, limits.burst()), (NonZeroU32::new(50), NonZeroU32::new(200)));
    assert_eq!((limits.header_timeout, limits.body_timeout), (Millis(2_000), Millis(1_500)));
    assert_eq!(limits.live_streams.get(), 12);
    let free = &config.plans["free"];
    assert_eq!((free.workflows, free.tasks_per_workflow, free.cron), (None, Some(5), true));
    let team = &config.plans[&config.default_plan];
    assert_eq!((team.workflows, team.tasks_per_workflow, team.executions_per_month), (None, Some(30), Some(100)));
    let otlp = config.otlp.as_ref().unwrap();
    assert_eq!((otlp.endpoint.as_str(), otlp.service_name.as_str()), ("http://127.0.0.1:4318", "flows"));
    assert_eq!(otlp.headers["authorization"].reveal(), "Bearer abc");
    assert_eq!(config.metrics.token.as_ref().unwrap().reveal(), "abcdef");
    let shown = format!("{config:?}{}", serde_json::to_string(&config).unwrap());
    assert!(!shown.contains("abcdef") && !shown.contains("Bearer") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn code_values_anchors_and_mcp_servers_are_read() {
    let text = r#"
javascript: {workers: 3, timeout: 2s, memory: 64MB}
limits: {values: 1000}
anchor: {webhook: "https://anchors.example.com/in", every: 1m}
mcpServers:
  files: {command: mcp-files, args: [--root, /srv], env: {LEVEL: "2"}, cwd: /srv, timeout: 5s}
  later: {url: "https://mcp.example.com/mcp", disabled: true}
"#;
    let config = Config::read(text, "s.yaml").unwrap();
    let code = &config.javascript;
    assert_eq!((code.workers, code.timeout, code.memory), (NonZeroU32::new(3), Millis(2_000), 64 << 20));
    assert_eq!(config.limits.values.get(), 1_000);
    let anchor = config.anchor.as_ref().unwrap();
    assert_eq!((anchor.webhook.as_deref(), anchor.every), (Some("https://anchors.example.com/in"), Millis(60_000)));
    // A server that is disabled is checked, and not used.
    assert_eq!(config.mcp_servers.keys().collect::<Vec<_>>(), ["files"]);
    let files = &config.mcp_servers["files"];
    let McpTransport::Stdio { command, args, env, cwd } = &files.transport else { panic!("{files:?}") };
    assert_eq!((command.as_str(), args.as_slice()), ("mcp-files", &["--root".to_string(), "/srv".into()][..]));
    assert_eq!((env["LEVEL"].reveal(), cwd.as_deref()), ("2", Some("/srv".as_ref())));
    assert_eq!(files.timeout, Millis(5_000));
    refused("mcpServers: {a: {url: 'https://a.example', disabled: 1}}", "mcpServers.a.disabled");
}

#[test]
fn a_database_is_a_url_or_a_mapping_and_the_environment_names_another() {
    let load = |text: &str, url: Option<&str>| {
        let variables = |name: &str| url.filter(|_| name == "STEPWELL_DATABASE").map(str::to_string);
        let config = Config::load(Some((text.as_bytes(), "s.yaml")), variables).unwrap();
        config.location("/data".into())
    };
    assert_eq!(load("", None), Location::Directory("/data".into()));
    let plain = |url: &str| Location::Postgres(PostgresOptions::new(url));
    assert_eq!(load("database: postgres://db/flows", None), plain("postgres://db/flows"));
    assert_eq!(load("database: {url: 'postgresql://db/flows'}", None), plain("postgresql://db/flows"));
    assert_eq!(load("database: postgres://db/flows", Some("postgres://other/x")), plain("postgres://other/x"));
    assert_eq!(load("", Some("postgres://other/x")), plain("postgres://other/x"));
    // The other database settings of the file remain.
    let pooled = PostgresOptions { prepared: false, ..PostgresOptions::new("postgres://other/x") };
    let text = "database: {url: 'postgres://db/flows', prepared: false}";
    assert_eq!(load(text, Some("postgres://other/x")), Location::Postgres(pooled));
}

#[test]
fn every_key_is_in_the_documents() {
    let text =
        "otlp: {endpoint: http://127.0.0.1:4318}\ndatabase: postgres://db/flows\nsmtp: {host: h, from: a@b.example}";
    let config = Config::read(text, "s.yaml").unwrap();
    let document = include_str!("../../../../docs/configuration.md");
    let Ok(serde_json::Value::Object(keys)) = serde_json::to_value(&config) else { panic!("an object") };
    for (key, value) in keys {
        let plan = [
            "workflows",
            "tasks_per_workflow",
            "concurrent_runs",
            "executions_per_month",
            "descendants_per_run",
            "run_bytes",
            "cron",
        ];
        let names = match value {
            _ if key == "plans" => plan.map(String::from).to_vec(),
            serde_json::Value::Object(inner) => inner.keys().map(|name| format!("{key}.{name}")).collect(),
            _ => vec![key],
        };
        for name in names {
            assert!(document.contains(&format!("`{name}`")), "{name}");
        }
    }
    let (_, example) = document.split_once("```yaml\n").unwrap();
    Config::read(example.split("```").next().unwrap(), "s.yaml").unwrap();
}

#[test]
fn every_fault_is_reported_at_once_with_its_path_and_a_hint() {
    let text = "lisen: 127.0.0.1:1\nslots: 0\ncors: {origins: [nonsense, 'https://ok.example', 'https://a.example/b']}\n\
                log: {level: inof, colour: 1}\nlimits: {body: ten, header_timeout: 0s, burst: 3}\nhosts: a\n\
                plans: {team: {workflow: 3, cron: 'yes'}}\ndefault_plan: pr\notlp: {}\nmetrics: [token]\n";
    let expected = [
        "s.yaml: hosts: a list is needed here, not text",
        "s.yaml: cors.origins[0]: this is not an origin; write one such as https://app.example.com",
        "s.yaml: cors.origins[2]: an origin has no path; write scheme, host and port only",
        "s.yaml: log.level: one of error, warn, info, debug, trace is needed here; did you mean `info`?",
        "s.yaml: log.colour: there is no such key; known here: format, level",
        "s.yaml: slots: a whole number from 1 to 4294967295 is needed here",
        "s.yaml: limits.body: this is not a size; write 512KB, 10MB or a number of bytes",
        "s.yaml: limits.burst: this has no effect without `requests_per_second`; set that too, or leave this out",
        "s.yaml: limits.header_timeout: this must be longer than zero; write 500ms, 30s or 5m",
        "s.yaml: plans.team.cron: true or false is needed here; write true",
        "s.yaml: plans.team.workflow: there is no such key; did you mean `workflows`?",
        "s.yaml: default_plan: there is no such plan; did you mean `pro`?",
        "s.yaml: otlp.endpoint: this is needed here; write the collector's URL, such as http://127.0.0.1:4318",
        "s.yaml: metrics: an object is needed here, not a list",
        "s.yaml: lisen: there is no such key; did you mean `listen`?",
    ];
    assert_eq!(faults(text), expected);
}

#[test]
fn faults_of_the_text_have_their_line() {
    refused("slots: 1\nslots: 2\n", "s.yaml:2: slots: \"slots\" is written twice here");
    refused("slots: [1\n", "s.yaml:");
    refused("- a\n", "s.yaml: an object is needed here, not a list");
    assert!(Config::read([0xff, 0xfe, 0], "s.yaml").is_err());
}

#[test]
fn values_that_cannot_be_meant_are_refused() {
    refused("listen: example.com:80", "write 127.0.0.1:7070");
    refused("listen: 7070", "text is needed here, not a number");
    refused("public_url: flows.example.com", "begins with https://");
    refused("public_url: 'https://u:p@example.com'", "without a name or password");
    refused("public_url: 'https://example.com/?a=1'", "without `?` and `#`");
    refused("otlp: {endpoint: 'http://127.0.0.1:4318/v1/traces'}", "leave it out");
    refused("otlp: {endpoint: 'http://c', headers: {'a b': x}}", "otlp.headers[\"a b\"]: this is not the name");
    refused(
        "otlp: {endpoint: 'http://c', headers: {a: \"x\\ny\"}}",
        "otlp.headers.a: a header value must not contain line breaks",
    );
    refused("cors: {origins: ['*']}", "cors.origins[0]: this is not an origin");
    refused("drain: 5 potatoes", "write 500ms, 30s or 5m");
    refused("limits: {body: 99999999999GB}", "this is not a size");
    refused("plans: {x: {workflows: -1}}", "or the word unlimited");
    for wrong in ["mysql://u:s3cret@db/x", "postgres://", "host=db password=s3cret", "postgres://u:s3 cret@db/x"] {
        refused(&format!("database: '{wrong}'"), "database: this is not the URL of a PostgreSQL database");
        refused(&format!("database: {{url: '{wrong}'}}"), "database.url: this is not the URL of a PostgreSQL database");
        assert!(!faults(&format!("database: '{wrong}'"))[0].contains("s3"));
    }
    refused("database: 5432", "database: text is needed here, not a number");
    refused("database: {writers: 2}", "database.url: this is needed here");
    refused("database: {url: 'postgres://db/x', writers: 0}", "database.writers: a whole number from 1");
    refused("database: {url: 'postgres://db/x', pool: 3}", "database.pool: there is no such key");
    refused("database: {url: 'postgres://db/x', prepared: 'off'}", "write false");
    refused("node: {lease: 100ms}", "node.lease: a length of time from 500ms to 10m");
    refused("node: {lease: 1h}", "node.lease: a length of time from 500ms to 10m");
    refused("node: {nmae: a}", "did you mean `name`?");
    refused("admin_key: 0123456789abcdef0123456789abcdef", "there is no such key");
    refused("master_key: AAAA", "master_key: there is no such key");
}

#[test]
fn the_environment_overrides_the_file() {
    let variables = |name: &str| {
        let value = match name {
            "STEPWELL_LISTEN" => "localhost:0",
            "STEPWELL_DATA" => "/data",
            "STEPWELL_PUBLIC_URL" => "https://flows.example.com",
            "STEPWELL_LOG" => "warn",
            "STEPWELL_CONFIG" => "/etc/stepwell.yaml",
            "STEPWELL_DATABASE" => " ",
            "STEPWELL_NODE_NAME" => "north-1",
            "STEPWELL_NODE_LEASE" => "1500ms",
            "STEPWELL_ADMIN_KEY" => "0123456789abcdef0123456789abcdef",
            "STEPWELL_MASTER_KEY" => "short",
            "STEPWELL_MASTER_KEY_FILE" => "/run/secrets/master",
            "STEPWELL_PRIVATE_ADDRESSES" => "false",
            _ => return None,
        };
        Some(value.to_string())
    };
    // The file alone would be refused because of its listen address.
    let config = Config::load(Some((b"listen: 0.0.0.0:1\nslots: 5\n", "s.yaml")), variables).unwrap();
    assert_eq!((config.listen.to_string().as_str(), config.slots.get()), ("127.0.0.1:0", 5));
    assert_eq!((&config.data, config.log.level), (&Some("/data".into()), Level::Warn));
    assert_eq!(config.given_public_url.as_deref(), Some("https://flows.example.com"));
    assert_eq!(Config::file(variables), Some("/etc/stepwell.yaml".into()));
    assert_eq!((&config.database, config.node.lease), (&None, Millis(1_500)));
    assert_eq!(config.node.name.as_deref(), Some("north-1"));
    assert_eq!(config.given_private_addresses, Some(false));
    assert_eq!(config.master_key_file, Some("/run/secrets/master".into()));
    let why = config.vault(None).err().unwrap();
    assert!(why.starts_with("STEPWELL_MASTER_KEY: ") && !why.contains("short"), "{why}");
    assert_eq!(config.admin_key.map(|key| key.reveal().len()), Some(32));

    let wrong = |name: &str| (name != "STEPWELL_DATA" && name != "STEPWELL_LOG").then(|| "s3 x".to_string());
    let faults = Config::load(None, wrong).unwrap_err();
    let expected = [
        "STEPWELL_LISTEN: an address and a port",
        "STEPWELL_DATABASE: this is not the URL",
        "STEPWELL_NODE_LEASE: this is not a length of time",
        "STEPWELL_ADMIN_KEY: at least 32 letters",
        "STEPWELL_PRIVATE_ADDRESSES: one of true, false",
        "STEPWELL_PUBLIC_URL: this is not a URL",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:?}");
    assert!(faults.iter().zip(expected).all(|(fault, expected)| fault.starts_with(expected)), "{faults:?}");
    assert!(faults.iter().all(|fault| !fault.contains("s3 x")), "{faults:?}");
}

#[test]
fn listening_beyond_this_machine_must_be_asked_for() {
    for listen in ["0.0.0.0:7070", "192.168.1.5:7070", "[::]:7070", "[::ffff:10.0.0.1]:1"] {
        refused(&format!("listen: '{listen}'"), "speaks plain HTTP");
        assert!(Config::read(format!("listen: '{listen}'\ninsecure_remote: true"), "s.yaml").is_ok());
    }
    for listen in ["127.0.0.1:0", "127.8.8.8:1", "[::1]:7070", "[::ffff:127.0.0.1]:1", "localhost:7070"] {
        assert!(Config::read(format!("listen: '{listen}'"), "s.yaml").is_ok(), "{listen}");
    }
}

#[test]
fn private_addresses_can_be_reached_only_from_a_private_server_unless_said() {
    let check = |text: &str, expected: bool| {
        assert_eq!(Config::read(text, "s.yaml").unwrap().private_addresses(), expected, "{text}");
    };
    check("", true);
    check("private_addresses: false", false);
    check("listen: 0.0.0.0:1\ninsecure_remote: true", false);
    check("listen: 0.0.0.0:1\ninsecure_remote: true\nprivate_addresses: true", true);
}

#[test]
fn urls_begin_with_where_the_server_really_listens_unless_said() {
    let config = Config::default();
    assert_eq!(config.public_url("127.0.0.1:4567".parse().unwrap()), "http://127.0.0.1:4567");
    assert_eq!(config.public_url("[::1]:80".parse().unwrap()), "http://[::1]:80");
    assert_eq!(config.public_url("0.0.0.0:80".parse().unwrap()), "http://127.0.0.1:80");
}

#[test]
fn only_hosts_that_mean_this_server_are_accepted() {
    let text = "listen: 10.1.2.3:7070\ninsecure_remote: true\nhosts: [alias.internal]\n";
    let config = Config::read(text, "s.yaml").unwrap();
    for host in ["localhost", "LOCALHOST:7070", "a.localhost:1", "127.0.0.1:7070", "[::1]:7070", "10.1.2.3:7070"] {
        assert!(config.accepts_host(host), "{host}");
    }
    assert!(config.accepts_host("alias.internal:99") && config.accepts_host("Alias.Internal."));
    for host in
        ["", "evil.example", "evil.example:7070", "localhost.evil.example", "127.0.0.1.evil.example", "a@localhost"]
    {
        assert!(!config.accepts_host(host), "{host}");
    }
    let config = Config::read("public_url: https://flows.example.com/x\n", "s.yaml").unwrap();
    assert!(config.accepts_host("flows.example.com") && !config.accepts_host("example.com"));
}

#[test]
fn mail_goes_out_encrypted_unless_nothing_secret_goes_with_it() {
    let read = |text: &str| {
        Config::load(Some((text.as_bytes(), "s.yaml")), |name| {
            (name == "STEPWELL_SMTP_PASSWORD").then(|| "s3cret".to_string())
        })
    };
    let config = read("smtp: {host: mail.example.com, username: ann, from: Wells <a@b.example>}\n").unwrap();
    let smtp = config.smtp.as_ref().unwrap();
    assert_eq!((smtp.port(), smtp.encryption), (587, Encryption::StartTls));
    assert_eq!(smtp.password.as_ref().map(Secret::reveal), Some("s3cret"));
    assert!(!serde_json::to_string(&config).unwrap().contains("s3cret"));
    assert_eq!(read("smtp: {host: m, from: a@b, encryption: tls}\n").unwrap().smtp.unwrap().port(), 465);
    refused("smtp: {host: m, from: a@b, encryption: none, username: ann}\n", "smtp.encryption: a password is not sent");
    refused("smtp: {host: m, from: someone}\n", "smtp.from: this is not an email address");
    refused("smtp: {from: a@b}\n", "smtp.host: this is needed here");
    refused("smtp: {host: m, from: a@b, port: 0}\n", "smtp.port: a port from 1 to 65535");
    refused("smtp: {host: m, from: a@b, password: x}\n", "smtp.username: a password has no effect");
}
