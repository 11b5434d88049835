//! All keys of the file and all variables of the environment.

use super::fields::{Fields, fault, object};
use super::{Anchor, Config, Database, DatabaseUrl, Encryption, Otlp, Plan, Secret, Smtp, servers, values};
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use stepwell_core::nearest::nearest;
use stepwell_core::time::Millis;

/// Applies the file. Errors do not start with the file's name yet.
pub fn file(config: &mut Config, text: &[u8], name: &str) -> Vec<String> {
    if says_nothing(text) {
        return Vec::new();
    }
    let document = match stepwell_formats::document(text, Some(name)) {
        Ok(document) => document,
        Err(faults) => {
            let line = |line: Option<u32>| line.map(|line| format!(":{line}")).unwrap_or_default();
            let mut list: Vec<String> =
                faults.list.iter().map(|fault| format!("{}: {fault}", line(fault.line))).collect();
            if faults.more > 0 {
                list.push(format!(": and {} more", faults.more));
            }
            return list;
        }
    };
    object(&document, "", |fields| keys(config, fields))
}

/// A file with only comments changes nothing.
fn says_nothing(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).all(|line| line.is_empty() || line.starts_with(b"#"))
}

fn keys(config: &mut Config, fields: &mut Fields<'_>) {
    fields.set("listen", &mut config.listen, values::address);
    config.data = fields.take("data", values::text).map(PathBuf::from);
    match fields.get("database") {
        Some(Value::Object(_)) => fields.section("database", |fields| config.database = database(fields)),
        // The short form: only the URL.
        _ => config.database = fields.take("database", values::database).map(Database::new),
    }
    fields.section("node", |fields| {
        config.node.name = fields.take("name", values::label);
        fields.set("lease", &mut config.node.lease, values::lease);
    });
    config.given_public_url = fields.take("public_url", values::url);
    fields.set("insecure_remote", &mut config.insecure_remote, values::flag);
    config.hosts = fields.list("hosts", values::host);
    fields.section("cors", |fields| config.cors.origins = fields.list("origins", values::origin));
    fields.section("log", |fields| {
        fields.set("format", &mut config.log.format, values::format);
        fields.set("level", &mut config.log.level, values::level);
    });
    fields.set("slots", &mut config.slots, values::positive);
    config.slots_per_organisation = fields.take("slots_per_organisation", values::positive);
    fields.set("descendants_per_run", &mut config.descendants_per_run, values::positive);
    fields.set("drain", &mut config.drain, values::length);
    config.given_private_addresses = fields.take("private_addresses", values::flag);
    fields.set("own_address", &mut config.own_address, values::flag);
    config.extra_ca_file = fields.take("extra_ca_file", values::text).map(PathBuf::from);
    fields.set("quarantine_after", &mut config.quarantine_after, values::small);
    fields.section("javascript", |fields| {
        config.javascript.workers = fields.take("workers", values::positive);
        fields.set("timeout", &mut config.javascript.timeout, values::positive_length);
        fields.set("memory", &mut config.javascript.memory, values::size);
    });
    fields.section("limits", |fields| limits(config, fields));
    fields.named("plans", |name, value, path| {
        // A custom plan has only the limits that it sets.
        let plan = config.plans.entry(name.into()).or_insert(Plan::UNLIMITED);
        object(value, path, |fields| self::plan(plan, fields))
    });
    fields.set("default_plan", &mut config.default_plan, values::text);
    if !config.plans.contains_key(&config.default_plan) {
        let names: Vec<&str> = config.plans.keys().map(String::as_str).collect();
        let near = nearest(&config.default_plan, names.iter().copied());
        let hint = near.map_or(format!("known: {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
        fields.fault("default_plan", &format!("there is no such plan; {hint}"));
    }
    config.master_key_file = fields.take("master_key_file", values::text).map(PathBuf::from);
    fields.section("otlp", |fields| config.otlp = otlp(fields));
    fields.section("anchor", |fields| config.anchor = Some(anchor(fields)));
    fields.section("smtp", |fields| config.smtp = smtp(fields));
    config.mcp_servers = servers::read(fields);
    fields.section("metrics", |fields| config.metrics.token = fields.take("token", values::secret));
}

fn database(fields: &mut Fields<'_>) -> Option<Database> {
    if fields.get("url").is_none() {
        fields.fault("url", "this is needed here; write the database's URL, such as postgres://user@host/name");
    }
    // The other fields are read anyway, so that their errors are reported too.
    let url = fields.take("url", values::database);
    let known = url.is_some();
    let mut database = Database::new(url.unwrap_or(DatabaseUrl(String::new())));
    database.listen_url = fields.take("listen_url", values::database);
    fields.set("writers", &mut database.writers, values::positive);
    fields.set("readers", &mut database.readers, values::positive);
    fields.set("prepared", &mut database.prepared, values::flag);
    fields.set("unsafe_settings", &mut database.unsafe_settings, values::flag);
    database.ca_file = fields.take("ca_file", values::text).map(PathBuf::from);
    known.then_some(database)
}

fn limits(config: &mut Config, fields: &mut Fields<'_>) {
    let limits = &mut config.limits;
    fields.set("body", &mut limits.body, values::size);
    fields.set("depth", &mut limits.depth, values::positive);
    fields.set("values", &mut limits.values, values::positive);
    limits.requests_per_second = fields.take("requests_per_second", values::positive);
    limits.given_burst = fields.take("burst", values::positive);
    if limits.given_burst.is_some() && limits.requests_per_second.is_none() {
        fields.fault("burst", "this has no effect without `requests_per_second`; set that too, or leave this out");
    }
    fields.set("connections", &mut limits.connections, values::positive);
    fields.set("header_timeout", &mut limits.header_timeout, values::positive_length);
    fields.set("body_timeout", &mut limits.body_timeout, values::positive_length);
    fields.set("live_streams", &mut limits.live_streams, values::positive);
    limits.live_streams_per_organisation = fields.take("live_streams_per_organisation", values::positive);
    fields.set("live_streams_per_key", &mut limits.live_streams_per_key, values::positive);
    fields.set("run_bytes", &mut limits.run_bytes, values::size);
    fields.set("long_callbacks", &mut limits.long_callbacks, values::long_callbacks);
}

fn plan(plan: &mut Plan, fields: &mut Fields<'_>) {
    fields.set("workflows", &mut plan.workflows, values::limit);
    fields.set("tasks_per_workflow", &mut plan.tasks_per_workflow, values::limit);
    fields.set("concurrent_runs", &mut plan.concurrent_runs, values::limit);
    fields.set("executions_per_month", &mut plan.executions_per_month, values::limit);
    fields.set("descendants_per_run", &mut plan.descendants_per_run, values::limit);
    fields.set("run_bytes", &mut plan.run_bytes, values::size_limit);
    fields.set("cron", &mut plan.cron, values::flag);
}

fn otlp(fields: &mut Fields<'_>) -> Option<Otlp> {
    let missing = fields.get("endpoint").is_none();
    let endpoint = fields.take("endpoint", values::collector);
    if missing {
        fields.fault("endpoint", "this is needed here; write the collector's URL, such as http://127.0.0.1:4318");
    }
    let mut headers = BTreeMap::new();
    fields.named("headers", |name, value, path| match header(name, value) {
        Ok(value) => {
            headers.insert(name.to_ascii_lowercase(), value);
            Vec::new()
        }
        Err(wrong) => vec![fault(path, &wrong)],
    });
    let service_name = fields.take("service_name", values::text).unwrap_or_else(|| "stepwell".into());
    Some(Otlp { endpoint: endpoint?, headers, service_name })
}

fn anchor(fields: &mut Fields<'_>) -> Anchor {
    let mut anchor = Anchor { every: Millis::from_secs(300), file: None, webhook: None, log: false };
    fields.set("every", &mut anchor.every, values::positive_length);
    anchor.file = fields.take("file", values::text).map(PathBuf::from);
    anchor.webhook = fields.take("webhook", values::url);
    fields.set("log", &mut anchor.log, values::flag);
    if anchor.file.is_none() && anchor.webhook.is_none() && !anchor.log {
        fields.fault("file", "anchors need a destination; set this, `webhook` or `log: true`");
    }
    anchor
}

fn smtp(fields: &mut Fields<'_>) -> Option<Smtp> {
    for (name, example) in [("host", "smtp.example.com"), ("from", "stepwell@example.com")] {
        if fields.get(name).is_none() {
            fields.fault(name, &format!("this is needed here; write one such as {example}"));
        }
    }
    let (host, from) = (fields.take("host", values::host), fields.take("from", values::mailbox));
    let given_port = fields.take("port", values::port);
    let encryption = fields.take("encryption", values::encryption).unwrap_or(Encryption::StartTls);
    let username = fields.take("username", values::text);
    let password = fields.take("password", values::secret);
    if password.is_some() && username.is_none() {
        fields.fault("username", "a password has no effect without this; set it too");
    }
    if encryption == Encryption::None && username.is_some() {
        fields.fault("encryption", "a password is not sent unencrypted; write starttls or tls");
    }
    Some(Smtp { host: host?, given_port, encryption, username, password, from: from? })
}

pub fn header(name: &str, value: &Value) -> Result<Secret, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| "this is not the name of a header")?;
    let text = values::text(value)?;
    HeaderValue::from_str(&text)
        .map_err(|_| "a header value must not contain line breaks or other control characters")?;
    Ok(Secret::new(text))
}

/// Applies the environment.
pub fn environment(config: &mut Config, lookup: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut set = |name: &str, to: &mut dyn FnMut(&Value) -> Result<(), String>| {
        if let Some(text) = variable(lookup, name)
            && let Err(wrong) = to(&Value::String(text))
        {
            faults.push(format!("{name}: {wrong}"));
        }
    };
    set("STEPWELL_LISTEN", &mut |value| values::address(value).map(|listen| config.listen = listen));
    set("STEPWELL_DATA", &mut |value| values::text(value).map(|data| config.data = Some(data.into())));
    set("STEPWELL_DATABASE", &mut |value| {
        let url = values::database(value)?;
        // The other database settings of the file remain.
        match &mut config.database {
            Some(database) => database.url = url,
            None => config.database = Some(Database::new(url)),
        }
        Ok(())
    });
    set("STEPWELL_NODE_NAME", &mut |value| values::label(value).map(|name| config.node.name = Some(name)));
    set("STEPWELL_NODE_LEASE", &mut |value| values::lease(value).map(|lease| config.node.lease = lease));
    set("STEPWELL_ADMIN_KEY", &mut |value| values::key(value).map(|key| config.admin_key = Some(key)));
    set("STEPWELL_MASTER_KEY", &mut |value| values::text(value).map(|key| config.master_key = Some(Secret::new(key))));
    set("STEPWELL_MASTER_KEY_FILE", &mut |value| {
        values::text(value).map(|file| config.master_key_file = Some(file.into()))
    });
    set("STEPWELL_PRIVATE_ADDRESSES", &mut |value| {
        values::word_flag(value).map(|may| config.given_private_addresses = Some(may))
    });
    set("STEPWELL_SMTP_PASSWORD", &mut |value| {
        // Without a mail server, the password has no effect.
        values::secret(value)
            .map(|password| config.smtp.iter_mut().for_each(|smtp| smtp.password = Some(password.clone())))
    });
    set("STEPWELL_PUBLIC_URL", &mut |value| values::url(value).map(|url| config.given_public_url = Some(url)));
    set("STEPWELL_LOG", &mut |value| values::level(value).map(|level| config.log.level = level));
    faults
}

/// A variable with an empty value counts as unset.
pub fn variable(lookup: &impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    lookup(name).filter(|value| !value.trim().is_empty())
}
