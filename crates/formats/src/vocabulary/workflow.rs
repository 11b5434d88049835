//! The fields of every definition, whatever its dialect.

use super::graph::{EDGE, NODE};
use super::step::{HEADERS, MAX_ATTEMPTS, RETRIES, RETRY, STEP, STEP_KEYS, TIMEOUT, TIMEOUT_S, TIMEOUT_SECONDS};
use super::{ANY_NUMBER, Map, Object, Rule, Shape, def};
use crate::values::Unit;
use stepwell_core::limits;

const MAX_LABELS: usize = 100;
const MAX_HOSTS: usize = 1_000;
const MAX_VARS: usize = 100;
/// Letters, digits, `_` and `-`. Letters of other scripts are the reader's.
const VAR_KEYS: &str = r"^[^\u0000- !\u0022#$%&'()*+,./:;<=>?@\[\\\]^`{|}~\u007f]+$";
const MAX_TRIGGERS: usize = 100;
/// The highest concurrency limit that a workflow can set.
const MAX_CONCURRENCY: u32 = 1_000_000;

pub static WORKFLOW: Object = Object::of(
    "workflow",
    "A workflow: a name, optional settings, and its steps as `tasks`, as `flow`, or as `nodes` and `edges`.",
    &[
        def(
            "name",
            Shape::Form(concat!(
                r#"^(?!wf_)[^\s/\\?#%"<>\u0000-\u001f\u007f]"#,
                r#"([^/\\?#%"<>\u0000-\u001f\u007f]*[^\s/\\?#%"<>\u0000-\u001f\u007f])?$"#
            )),
            "The name of the workflow, unique in the organisation. At most 128 bytes; no control characters, none of \
             `/ \\ ? # % \" < >`, and no `wf_` prefix.",
            r#""order-processing""#,
        ),
        def("title", Shape::Any, "Replaces `name` where an editor saves a title; ignored if both are present.", ""),
        def("description", Shape::Text, "What the workflow does. At most 16 KB.", r#""Charges and ships an order""#),
        def(
            "tasks",
            Shape::Map(&Map { value: Shape::Object(&STEP), keys: STEP_KEYS, bounds: (1, usize::MAX) }),
            "The steps as a map. A step starts when all that it `needs` has ended.",
            r#"{"charge": {"url": "https://pay.example/charges"}, "ship": {"needs": "charge", "tool": "ship"}}"#,
        ),
        def(
            "flow",
            Shape::Map(&Map { value: Shape::Object(&STEP), keys: STEP_KEYS, bounds: ANY_NUMBER }),
            "The steps as a map. Each names what comes next (`next`, `branch`, `parallel`, `join`, `done`); the first \
             one has the key `start`.",
            r#"{"start": {"tool": "write_draft", "next": "review"}, "review": {"approval": true}}"#,
        ),
        def(
            "nodes",
            Shape::List(&Shape::Object(&NODE), ANY_NUMBER),
            "The steps as the nodes of a canvas, connected by `edges`.",
            r#"[{"id": "begin", "type": "start"}]"#,
        ),
        def(
            "edges",
            Shape::List(&Shape::Object(&EDGE), ANY_NUMBER),
            "The connections between the `nodes`.",
            r#"[{"source": "begin", "target": "fetch"}]"#,
        ),
        def(
            "trigger",
            Shape::Either(&[
                Shape::Choice(TRIGGERS),
                Shape::Object(&TRIGGER),
                Shape::List(&Shape::Either(&[Shape::Choice(TRIGGERS), Shape::Object(&TRIGGER)]), (1, MAX_TRIGGERS)),
            ]),
            "What starts a run: `api` (default), `webhook`, `cron`, `at`, or a list of objects such as \
             `{cron: \"0 8 * * 1-5\", timezone: Europe/Amsterdam}`.",
            r#"{"cron": "0 8 * * 1-5", "timezone": "Europe/Amsterdam"}"#,
        )
        .also(&["triggers"]),
        def("cron", Shape::Text, "The expression of `trigger: cron`: minute, hour, day, month, weekday.", CRON)
            .also(&["cron_expression", "schedule"]),
        def("timezone", Shape::Text, "The time zone of `trigger: cron`.", r#""Europe/Amsterdam""#),
        def("at", Shape::Text, "The time of `trigger: at`.", r#""2026-02-22T10:00:00Z""#),
        def(
            "max_duration",
            Shape::Positive(Unit::Seconds),
            "A run that takes longer ends as `timeout`. Default: 30d. A bare number is seconds.",
            r#""2h""#,
        )
        .also(&["max_duration_seconds"]),
        def(
            "retention",
            Shape::Length(Unit::Seconds),
            "How long a finished run is kept. Default: 30d. A bare number is seconds.",
            r#""90d""#,
        ),
        def(
            "concurrency",
            Shape::Either(&[Shape::Count(1, MAX_CONCURRENCY), Shape::Object(&CONCURRENCY)]),
            "How many runs may be active at a time, in all or for each key. A number is the limit alone.",
            r#"{"limit": 10, "key": "{{trigger.body.customer}}", "when_full": "queue"}"#,
        ),
        def(
            "input_schema",
            Shape::Either(&[Shape::Flag, Shape::Object(&JSON_SCHEMA)]),
            "A JSON Schema for the input of a run, which is checked when a run is started.",
            r#"{"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}"#,
        ),
        def("enabled", Shape::Flag, "`false` stops new runs from starting. Default: true.", "true"),
        def("expose_as_tool", Shape::Flag, "Offers the workflow to agents as a tool. Default: false.", "true"),
        def(
            "allow_hosts",
            Shape::OneOrMore(&Shape::Form(r"^(\*\.)?[^\s/?#@!$&'()+,;=%<>\\^`{|}~\u0022]+$"), (0, MAX_HOSTS)),
            "The hosts that JavaScript steps may call, without scheme and path. `*.example.com` matches every \
             subdomain.",
            r#"["api.example.com"]"#,
        ),
        def(
            "labels",
            Shape::Map(&Map {
                value: Shape::Either(&[Shape::Text, Shape::Flag, Shape::Number]),
                keys: "",
                bounds: (0, MAX_LABELS),
            }),
            "Labels of your own: strings, numbers or booleans, stored as strings.",
            r#"{"team": "payments"}"#,
        ),
        def(
            "max_iterations",
            Shape::Whole(1, limits::MAX_ITERATIONS),
            "The most passes of one loop that a cycle makes. Default: 1000.",
            "50",
        ),
        def(
            "vars",
            Shape::Map(&Map { value: Shape::Any, keys: VAR_KEYS, bounds: (0, MAX_VARS) }),
            "Values that are computed once, when a run starts, and read as `vars.NAME`. Each is a template.",
            r#"{"total": "{{input.price * input.count}}"}"#,
        ),
        def(
            "defaults",
            Shape::Object(&DEFAULTS),
            "What the calls of the workflow have if they set nothing themselves.",
            r#"{"timeout": "10s", "retries": 2}"#,
        ),
        def(
            "output",
            Shape::Any,
            "A template for the result of the run. Default: nothing in tasks, the result of the step that last ended \
             a path in flow, the values of `end` nodes in graph.",
            r#"{"total": "{{tasks.sum.body.total}}"}"#,
        ),
    ],
);

const CRON: &str = r#""0 8 * * 1-5""#;
const TRIGGERS: &[&str] = &["api", "webhook", "cron", "at", "manual", "schedule"];
/// Time zones, inputs and choices of a schedule: they have no meaning on other triggers.
pub const SCHEDULE_FIELDS: &[&str] =
    &["timezone", "tz", "when_skipped", "when_repeated", "overlap", "catch_up", "input"];

pub static TRIGGER: Object = Object::of(
    "trigger",
    "A trigger: exactly one of `cron`, `at`, `webhook` and `api`, with its settings.",
    &[
        def("cron", Shape::Text, "A cron expression: minute, hour, day, month, weekday.", CRON)
            .also(&["cron_expression", "schedule"]),
        def("at", Shape::Text, "Starts one run at this time.", r#""2026-02-22T10:00:00Z""#),
        def(
            "webhook",
            Shape::Either(&[Shape::True, Shape::Object(&WEBHOOK)]),
            "Starts a run for each call of the workflow's own URL. `true` accepts unsigned calls.",
            r#"{"verify": {"secret": "HOOK"}}"#,
        ),
        def("api", Shape::Any, "Starts runs on request. This is possible with every trigger.", "true"),
        def("timezone", Shape::Text, "The time zone of the cron expression. Default: UTC.", r#""Europe/Amsterdam""#)
            .also(&["tz"]),
        def("input", Shape::Any, "The input of the runs that this trigger starts, taken literally.", "{}"),
        def(
            "when_skipped",
            Shape::Choice(&["run", "skip"]),
            "Whether to run at a time of day that a change to summer time skips. Default: run.",
            "",
        ),
        def(
            "when_repeated",
            Shape::Choice(&["once", "twice"]),
            "How often to run at a time of day that a change to winter time repeats. Default: once.",
            "",
        ),
        def(
            "overlap",
            Shape::Choice(&["allow", "skip", "cancel"]),
            "What to do while an earlier run of this schedule is still active. Default: allow.",
            "",
        ),
        def(
            "catch_up",
            Shape::Choice(&["none", "last", "all"]),
            "Which times that were missed during an outage start a run afterwards. Default: last.",
            "",
        ),
    ],
)
.rules(&[
    Rule::One(&["cron", "cron_expression", "schedule", "at", "webhook", "api"]),
    Rule::AtMostOne(&["cron", "cron_expression", "schedule"]),
    Rule::AtMostOne(&["timezone", "tz"]),
    Rule::Excludes("at", &["timezone", "tz", "when_skipped", "when_repeated", "overlap", "catch_up"]),
    Rule::Excludes("webhook", SCHEDULE_FIELDS),
    Rule::Excludes("api", SCHEDULE_FIELDS),
]);

static WEBHOOK: Object = Object::of(
    "webhook",
    "How calls of a webhook trigger are verified, and how a repeated delivery is recognised.",
    &[
        def("verify", Shape::Object(&VERIFY), "How calls are verified.", r#"{"secret": "HOOK"}"#).null(),
        def(
            "dedupe",
            Shape::Object(&DEDUPE),
            "Where the id of a delivery is, so that a repeated one starts no second run.",
            r#"{"header": "X-Request-Id"}"#,
        ),
    ],
);

static VERIFY: Object = Object::of(
    "verify",
    "The signature of calls. A call without a valid one is refused.",
    &[
        def("secret", Shape::Form("^[A-Za-z0-9_]{1,128}$"), "The name of the secret, never the secret.", r#""HOOK""#),
        def(
            "scheme",
            Shape::Choice(&["standard", "header"]),
            "`standard` is Standard Webhooks; `header` is an HMAC-SHA256 of the body in a header. Default: `header` \
             if `header` is given, else `standard`.",
            "",
        ),
        def("header", Shape::Form(HEADER), "The header that has the signature.", r#""X-Hub-Signature-256""#),
        def("prefix", Shape::Form("^[ -~]{0,64}$"), "What precedes the signature in the header.", r#""sha256=""#),
        def("encoding", Shape::Choice(&["hex", "base64"]), "How the signature is written. Default: hex.", ""),
    ],
)
.rules(&[
    Rule::Some(&["secret"]),
    Rule::Bars("scheme", r#""standard""#, &["header", "prefix", "encoding"]),
    Rule::Asks("scheme", r#""header""#, &["header"]),
    Rule::Needs("prefix", &["header"]),
    Rule::Needs("encoding", &["header"]),
]);

const HEADER: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$";

static DEDUPE: Object = Object::of(
    "dedupe",
    "Where the id of a delivery is: exactly one of `header` and `body`.",
    &[
        def("header", Shape::Form(HEADER), "The header that has the id.", r#""X-Request-Id""#),
        def("body", Shape::Form(r"^[^\s.{]+(\.[^\s.{]+)*$"), "The path of the id in the body.", r#""event.id""#),
    ],
)
.rules(&[Rule::One(&["header", "body"])]);

static DEFAULTS: Object = Object::of(
    "defaults",
    "Timeout and retries of every call, and headers of every http step.",
    &[TIMEOUT, TIMEOUT_S, TIMEOUT_SECONDS, RETRIES, MAX_ATTEMPTS, RETRY, HEADERS],
)
.rules(&[
    Rule::AtMostOne(&["timeout", "timeout_s", "timeoutSeconds"]),
    Rule::AtMostOne(&["retries", "retry_attempts", "maxAttempts", "max_attempts"]),
]);

static CONCURRENCY: Object = Object::of(
    "concurrency",
    "How many runs may be active at a time.",
    &[
        def("limit", Shape::Whole(1, MAX_CONCURRENCY), "The most active runs.", "10"),
        def(
            "key",
            Shape::Any,
            "A template; the limit counts for each of its values. It reads only `input`, `trigger.body` and \
             `trigger.headers`.",
            r#""{{trigger.body.customer}}""#,
        ),
        def(
            "when_full",
            Shape::Choice(&["queue", "skip", "cancel_oldest"]),
            "What to do with a new run when the limit is reached. Default: queue.",
            "",
        ),
    ],
)
.rules(&[Rule::Some(&["limit"])]);

const TYPES: &[&str] = &["object", "array", "string", "number", "integer", "boolean", "null"];

pub static JSON_SCHEMA: Object = Object::of(
    "jsonSchema",
    "A JSON Schema.",
    &[
        def("type", Shape::OneOrMore(&Shape::Choice(TYPES), ANY_NUMBER), "The type of the value.", r#""object""#),
        def(
            "properties",
            Shape::Map(&Map {
                value: Shape::Either(&[Shape::Flag, Shape::Object(&JSON_SCHEMA)]),
                keys: "",
                bounds: ANY_NUMBER,
            }),
            "The fields of an object.",
            r#"{"amount": {"type": "number"}}"#,
        ),
        def("required", Shape::List(&Shape::Text, ANY_NUMBER), "The fields that must be there.", r#"["amount"]"#),
        def(
            "items",
            Shape::Either(&[Shape::Flag, Shape::Object(&JSON_SCHEMA)]),
            "The entries of a list.",
            r#"{"type": "string"}"#,
        ),
    ],
)
.open();
