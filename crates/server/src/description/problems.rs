//! The problems of each operation: which statuses it gives, and with which codes.
//!
//! Most follow from what a request consists of: a key, a path, a body. The rest is in [`OWN`].

use super::{operations, reference, schemas};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Codes and what they mean. `/docs/errors` lists them.
pub const CODES: [(&str, &str); 47] = [
    ("bad-request", "The request cannot be parsed."),
    ("invalid-json", "The body is not JSON; the detail has the line and column."),
    ("not-text", "A definition must be UTF-8 text."),
    ("body-too-deep", "The body is nested deeper than limits.depth allows."),
    ("not-a-websocket", "The request does not ask for a WebSocket."),
    ("unauthorised", "Authentication failed: send a valid API key."),
    ("forbidden", "The caller lacks the right named in the detail."),
    ("refused", "This caller is not allowed to do this, regardless of their rights."),
    ("cross-origin", "Session cookies are accepted only from pages of this server."),
    (
        "plan-limit",
        "The plan does not allow it (403), or its limit of concurrent runs is reached (429): wait for the time in \
         Retry-After.",
    ),
    ("not-found", "It does not exist, or belongs to another organisation."),
    ("method-not-allowed", "The path does not support this method."),
    ("request-timeout", "The body did not arrive in time."),
    ("exists", "The name is already taken."),
    ("not-now", "The current state does not allow it; the detail has the reason."),
    ("changed-meanwhile", "It was changed by another request in the meantime: read it again."),
    ("idempotency-key-reused", "The key was already used with a different body."),
    ("workflow-disabled", "The workflow is disabled."),
    ("run-finished", "The run has ended; status_now has its status."),
    ("step-finished", "The step has ended."),
    ("not-waiting", "The step is not waiting for this."),
    ("stale-attempt", "The step has started another attempt in the meantime."),
    ("other-digest", "The answer refers to an outdated question: read it again and answer the current one."),
    ("repeated", "It was already delivered."),
    ("not-started", "The run has not started."),
    ("nothing-to-retry", "The run has not ended, or has nothing to retry."),
    ("other-dialect", "The newer version is written in another dialect."),
    ("unknown-step", "The run has no such step."),
    ("body-too-large", "The body is longer than limits.body allows, or was cut off."),
    ("too-many-values", "The body has more values than limits.values allows."),
    ("content-encoding", "Compressed bodies are not supported: remove Content-Encoding."),
    ("unknown-host", "The server does not accept this host name: see hosts and public_url."),
    (
        "invalid-definition",
        "The definition is invalid; every error is listed with its location and a hint how to fix it.",
    ),
    ("invalid-input", "Part of the request is invalid; each error is listed with its path."),
    ("rate-limited", "The rate limit is exceeded: wait for the time in Retry-After."),
    ("concurrency-limit", "The workflow has reached its limit of concurrent runs: wait for the time in Retry-After."),
    ("broken", "Stored data cannot be read: an operator must investigate."),
    ("internal", "An internal error of the server."),
    ("unavailable", "The server is stopping, or the store does not respond: try again."),
    ("not-ready", "The server is not ready."),
    ("busy", "Too many large request bodies at the moment: try again."),
    ("not-startable", "The workflow cannot be started by calls at the moment."),
    ("too-many-streams", "The limit of live streams is reached."),
    ("invalid-message", "A message to the socket is not text."),
    ("unknown-event", "The socket does not know the event of a message."),
    ("too-many-joined", "The socket has joined as many runs as it may."),
    ("not-shown", "Over MCP: the question is too long to be shown in full."),
];

/// What a status means, for the responses that have it.
const STATUSES: [(&str, &str); 14] = [
    ("400", "The request cannot be parsed"),
    ("401", "Authentication failed"),
    ("403", "The caller may not do this, or the plan does not allow it"),
    ("404", "It does not exist, or belongs to another organisation"),
    ("408", "The body did not arrive in time"),
    ("409", "The current state does not allow it, or it exists already"),
    ("410", "Too late: it has ended"),
    ("412", "It has changed since `If-Match`"),
    ("413", "The body is too large"),
    ("415", "The content encoding is not supported"),
    ("421", "The server does not accept this host name"),
    ("422", "The request is invalid; all errors are listed"),
    ("429", "Wait for the time in `Retry-After`, then try again"),
    ("500", "Stored data cannot be read: an operator must investigate"),
];
const UNAVAILABLE: (&str, &str) = ("503", "Try again later");

const GATE: &str = "409:run-finished,step-finished,not-waiting,other-digest,not-now,repeated,unknown-step,\
                    stale-attempt 422:invalid-definition";
const STARTS: &str = "403:plan-limit 409:workflow-disabled 429:plan-limit,concurrency-limit";
const DEFINES: &str = "400:not-text 403:plan-limit 409:exists 422:invalid-definition";

/// Codes that do not follow from the shape of a request, by operation.
const OWN: [(&str, &[&str]); 41] = [
    ("createWorkflow", &[DEFINES]),
    ("putWorkflow", &[DEFINES, "412:changed-meanwhile"]),
    ("updateWorkflow", &["403:plan-limit"]),
    ("restoreWorkflow", &["403:plan-limit 409:exists"]),
    ("checkDefinition", &[DEFINES]),
    ("acceptReview", &["403:plan-limit 409:exists,not-now 422:invalid-definition"]),
    ("refuseReview", &["409:not-now"]),
    ("triggerWorkflow", &[STARTS, "409:idempotency-key-reused"]),
    ("rerunRun", &[STARTS]),
    ("startTestRun", &[STARTS, "422:invalid-definition"]),
    ("callTrigger", &[STARTS, "401:unauthorised 503:not-startable 409:idempotency-key-reused"]),
    ("cancelRun", &["409:run-finished,not-started"]),
    ("cancelRunOfWorkflow", &["409:run-finished,not-started"]),
    (
        "retryRun",
        &["409:nothing-to-retry,other-dialect,workflow-disabled 429:plan-limit,concurrency-limit 403:plan-limit"],
    ),
    ("previewRetry", &["409:nothing-to-retry,other-dialect,not-now"]),
    ("eraseRun", &["409:run-finished"]),
    ("labelRun", &["409:run-finished"]),
    ("getApproval", &[GATE]),
    ("approveStep", &[GATE]),
    ("denyStep", &[GATE]),
    ("approveStepById", &[GATE]),
    ("denyStepById", &[GATE]),
    ("signalStep", &[GATE]),
    ("settleStep", &[GATE]),
    ("finishStep", &[GATE]),
    ("deliverToStep", &[GATE]),
    ("createApprovalLink", &[GATE]),
    ("showApprovalPage", &["403:refused,forbidden 409:not-now 410:step-finished,run-finished"]),
    ("submitApprovalPage", &[GATE, "403:refused,forbidden,cross-origin 410:step-finished,run-finished"]),
    ("deliverCallback", &["409:repeated,not-waiting 410:run-finished,step-finished"]),
    ("showCallbackPage", &["409:repeated,not-waiting 410:run-finished,step-finished"]),
    ("signIn", &["401:unauthorised"]),
    ("createUser", &["409:exists"]),
    ("createKey", &["409:exists"]),
    ("putRole", &["409:exists"]),
    ("createChannel", &["409:exists 403:plan-limit"]),
    ("putPolicy", &["403:plan-limit"]),
    ("createOrganisation", &["409:exists"]),
    ("streamRun", &["503:too-many-streams"]),
    ("streamEvents", &["503:too-many-streams"]),
    ("openSocket", &["400:not-a-websocket 503:too-many-streams"]),
];

/// Codes by status.
type Found = BTreeMap<String, Vec<&'static str>>;

fn note(found: &mut Found, listed: &'static str) {
    for (status, codes) in listed.split(' ').filter_map(|one| one.split_once(':')) {
        let all = found.entry(status.to_string()).or_default();
        all.extend(codes.split(','));
    }
}

fn problems(name: &str, operation: &Map<String, Value>) -> Found {
    let mut found = Found::new();
    note(&mut found, "421:unknown-host 422:invalid-input 429:rate-limited 500:broken,internal 503:unavailable");
    let is_public = operation.get("security").is_some_and(|ways| ways == &json!([{}]));
    if !is_public {
        note(&mut found, "401:unauthorised 403:forbidden,refused,cross-origin");
    }
    let takes = operation.get("parameters").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let has_body = operation.contains_key("requestBody");
    if takes || has_body {
        note(&mut found, "400:bad-request 404:not-found");
    }
    if has_body {
        note(
            &mut found,
            "400:invalid-json,body-too-deep 408:request-timeout 413:body-too-large,too-many-values \
             415:content-encoding 503:busy",
        );
    }
    if !name.starts_with("GET ") {
        note(&mut found, "409:changed-meanwhile,not-now");
    }
    let id = operation["operationId"].as_str().unwrap_or_default();
    let own = OWN.iter().filter(|(operation, _)| *operation == id).flat_map(|(_, listed)| *listed);
    own.for_each(|listed| note(&mut found, listed));
    for codes in found.values_mut() {
        codes.sort_unstable();
        codes.dedup();
    }
    found
}

/// Replaces the problems that the macros repeat everywhere by those that each operation has.
pub fn add(api: &mut Value) {
    let mut shared = Shared::default();
    for (name, operation) in operations(api) {
        let found = problems(&name, operation);
        let id = operation["operationId"].as_str().unwrap_or_default().to_string();
        let responses = operation["responses"].as_object_mut().expect("every operation has responses");
        responses.retain(|status, _| !status.starts_with(['4', '5']));
        for (status, codes) in found {
            let name = shared.name(&id, &status, codes);
            responses.insert(status, json!({"$ref": format!("#/components/responses/{name}")}));
        }
    }
    let shared = shared.0.into_iter().map(|((status, codes), name)| (name, response(&status, &codes)));
    let shared: Map<String, Value> = shared.collect();
    api["components"]["responses"] = shared.into();
    let codes = CODES.map(|(code, _)| code).to_vec();
    let schemas = schemas(api);
    schemas.insert(
        "ProblemCode".into(),
        json!({
            "type": "string", "description": "Stable code of an error. New codes may be added.", "enum": codes,
        }),
    );
    schemas["ProblemView"]["properties"]["code"] = reference("ProblemCode");
    let examples: Map<String, Value> =
        CODES.iter().map(|(code, about)| (code.to_string(), example(code, about))).collect();
    api["components"]["examples"] = examples.into();
}

/// Responses that several operations have, by status and codes.
#[derive(Default)]
struct Shared(BTreeMap<(String, Vec<&'static str>), String>);

impl Shared {
    /// The name of a response: that of its status, or with the first operation that has other codes.
    fn name(&mut self, id: &str, status: &str, codes: Vec<&'static str>) -> String {
        let plain = NAMES.iter().find(|(known, _)| *known == status).map_or("Problem", |(_, name)| name);
        let is_first = !self.0.values().any(|name| name == plain);
        let new = if is_first { plain.to_string() } else { format!("{plain}_{id}") };
        self.0.entry((status.to_string(), codes)).or_insert(new).clone()
    }
}

const NAMES: [(&str, &str); 15] = [
    ("400", "BadRequest"),
    ("401", "Unauthorised"),
    ("403", "Forbidden"),
    ("404", "NotFound"),
    ("408", "RequestTimeout"),
    ("409", "Conflict"),
    ("410", "Gone"),
    ("412", "PreconditionFailed"),
    ("413", "TooLarge"),
    ("415", "Encoding"),
    ("421", "WrongHost"),
    ("422", "Invalid"),
    ("429", "TooMany"),
    ("500", "Broken"),
    ("503", "Unavailable"),
];

fn response(status: &str, codes: &[&str]) -> Value {
    let about =
        STATUSES.iter().chain([&UNAVAILABLE]).find(|(known, _)| *known == status).map_or("", |(_, about)| about);
    let listed = codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
    let examples: Map<String, Value> =
        codes.iter().map(|code| (code.to_string(), json!({"$ref": format!("#/components/examples/{code}")}))).collect();
    let mut response = json!({
        "description": format!("{about}: {listed}"),
        "content": {"application/problem+json": {"schema": reference("ProblemView"), "examples": examples}},
    });
    if status == "429" {
        response["headers"] = json!({
            "Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}},
        });
    }
    response
}

fn example(code: &str, about: &str) -> Value {
    json!({"summary": about, "value": {
        "type": format!("/docs/errors#{code}"), "title": about, "status": status_of(code), "detail": about, "code": code,
    }})
}

/// The status that a code usually comes with.
fn status_of(code: &str) -> u16 {
    match code {
        "unauthorised" => 401,
        "forbidden" | "refused" | "cross-origin" | "plan-limit" | "not-shown" => 403,
        "not-found" => 404,
        "method-not-allowed" => 405,
        "request-timeout" => 408,
        "body-too-large" | "too-many-values" => 413,
        "content-encoding" => 415,
        "unknown-host" => 421,
        "invalid-definition" | "invalid-input" => 422,
        "rate-limited" | "concurrency-limit" | "too-many-joined" => 429,
        "broken" | "internal" => 500,
        "unavailable" | "not-ready" | "busy" | "not-startable" | "too-many-streams" => 503,
        "bad-request" | "invalid-json" | "not-text" | "body-too-deep" | "not-a-websocket" | "invalid-message"
        | "unknown-event" => 400,
        _ => 409,
    }
}

/// Whether the description says that an operation may give this code with this status.
#[doc(hidden)]
pub fn is_listed(method: &str, path: &str, status: u16, code: &str) -> bool {
    let paths = super::description()["paths"].as_object().into_iter().flatten();
    let path = path.split('?').next().unwrap_or_default();
    let asked: Vec<&str> = path.split('/').collect();
    let fits = |route: &str| {
        let route: Vec<&str> = route.split('/').collect();
        route.len() == asked.len() && route.iter().zip(&asked).all(|(one, is)| one.starts_with('{') || one == is)
    };
    // A route without parameters goes before one that has them.
    let found = paths.filter(|(route, _)| fits(route)).min_by_key(|(route, _)| route.matches('{').count());
    let Some(operation) = found.and_then(|(_, item)| item.get(method.to_ascii_lowercase())) else { return true };
    let response = operation["responses"][status.to_string()]["$ref"].as_str().unwrap_or_default();
    let content = super::description().pointer(response.trim_start_matches('#'));
    content.is_some_and(|response| response["content"]["application/problem+json"]["examples"].get(code).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_listed_code_and_operation_exists() {
        let known: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
        assert_eq!(known.len(), CODES.len());
        let mut api = super::super::description().clone();
        let ids: BTreeSet<String> =
            operations(&mut api).iter().map(|(_, one)| one["operationId"].as_str().unwrap().to_string()).collect();
        for (id, listed) in OWN {
            assert!(ids.contains(id), "{id}");
            for codes in listed.iter().flat_map(|one| one.split(' ')) {
                for code in codes.split_once(':').unwrap().1.split(',') {
                    assert!(known.contains(code), "{code}");
                }
            }
        }
    }
}
