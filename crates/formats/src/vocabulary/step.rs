//! The fields of steps in tasks and flow, and those that nodes share with them.

use super::workflow::JSON_SCHEMA;
use super::{ANY_NUMBER, CALLS, Def, K, Map, Object, Only, Rule, Shape, def};
use crate::values::Unit;
use stepwell_core::limits;

/// The form of a step's name: letters, digits, `_`, `-` and inner spaces. Letters of other scripts are the reader's.
pub const STEP_KEYS: &str = concat!(
    r"^[^\u0000- !\u0022#$%&'()*+,./:;<=>?@\[\\\]^`{|}~\u007f]",
    r"([^\u0000-\u001f!\u0022#$%&'()*+,./:;<=>?@\[\\\]^`{|}~\u007f]*",
    r"[^\u0000- !\u0022#$%&'()*+,./:;<=>?@\[\\\]^`{|}~\u007f])?$"
);

const MAX_ENTRIES: usize = 256;
const MAX_RETRY_RULES: usize = 50;
/// The most approvals that a gate can require.
const MAX_APPROVALS: u32 = 100;

pub const DESCRIPTION: Def = def("description", Shape::Text, "What the step does. It changes nothing.", "");

pub static STEP: Object = Object::of(
    "step",
    "A step. One of its fields decides its kind: `url`, `tool`, `javascript`, `query`, `condition`, `sleep`, `until`, \
     `wait_for_webhook`, `approval`, `for_each` or `workflow`.",
    &[
        def(
            "needs",
            Shape::OneOrMore(&Shape::Text, ANY_NUMBER),
            "The steps that this one waits for. Without `if`, all of them must succeed.",
            r#"["charge"]"#,
        )
        .only(Only::Tasks),
        def(
            "if",
            Shape::Condition,
            "A condition. The step waits until all that it needs has ended, successfully or not, and runs if this \
             holds.",
            r#""tasks.charge.status != 'success'""#,
        )
        .only(Only::Tasks),
        def("name", Shape::Text, "The name of the step; only `start` may have another one than its key.", "")
            .only(Only::Flow),
        DESCRIPTION,
        URL,
        METHOD,
        HEADERS,
        BODY,
        FORM,
        TOOL,
        ARGS,
        def("javascript", Shape::Text, CODE_DOC, CODE_EXAMPLE).on(&[K::Code]),
        MEMORY,
        def(
            "query",
            Shape::Object(&QUERY),
            "Runs one SQL statement on a named database, or a saved query.",
            r#"{"connection": "crm", "sql": "select name from customers where id = $1", "params": ["{{input.id}}"]}"#,
        )
        .on(&[K::Query]),
        def(
            "condition",
            Shape::List(&Shape::Object(&ENTRY), (1, MAX_ENTRIES)),
            "The `id` of the first entry that holds becomes the `body` of the step.",
            r#"[{"id": "big", "if": "input.amount > 100"}, {"id": "small"}]"#,
        )
        .on(&[K::Condition])
        .only(Only::Tasks),
        def(
            "sleep",
            Shape::Either(&[Shape::Length(Unit::Seconds), Shape::Form(r"\{\{")]),
            "Waits for a duration, or for what a template results in. A bare number is seconds.",
            r#""3d""#,
        )
        .on(&[K::Sleep]),
        def("until", Shape::Text, "Waits until a time, which may be a template.", r#""2026-02-22T10:00:00Z""#)
            .on(&[K::Sleep]),
        WAIT,
        def(
            "approval",
            Shape::Either(&[Shape::True, Shape::Object(&APPROVAL)]),
            "Waits for people to approve or deny. `true` asks without a message.",
            r#"{"message": "Pay {{input.amount}}?", "approvers": ["ann"], "timeout": "2h"}"#,
        )
        .on(&[K::Gate]),
        def("notify_user", Shape::OneOrMore(&PERSON, ANY_NUMBER), "Whom to tell that an answer is needed.", "")
            .on(&[K::Gate]),
        def(
            "for_each",
            Shape::Either(&[Shape::List(&Shape::Any, ANY_NUMBER), TEMPLATE]),
            "Runs `tasks` for each item of a list.",
            r#""{{tasks.rows.body}}""#,
        )
        .on(&[K::Each]),
        def("max_parallel", Shape::Whole(1, limits::MAX_ITERATIONS), "Items that run at a time. Default: 10.", "5")
            .on(&[K::Each]),
        def(
            "on_item_error",
            Shape::Choice(&["stop", "continue"]),
            "What to do when an item fails: `stop` (default) fails the step, `continue` records the error as the \
             item's result.",
            "",
        )
        .on(&[K::Each]),
        def("output", Shape::Any, "A template for the result of each item.", r#""{{tasks.pay.body.id}}""#)
            .on(&[K::Each]),
        def(
            "tasks",
            Shape::Map(&Map { value: Shape::Object(&STEP), keys: STEP_KEYS, bounds: (1, usize::MAX) }),
            "The steps to run for each item.",
            r#"{"pay": {"tool": "pay", "args": {"row": "{{item}}"}}}"#,
        )
        .on(&[K::Each]),
        WORKFLOW_NAME,
        INPUT,
        def("next", Shape::Text, "The step that follows. An earlier one makes a loop.", r#""review""#).only(Only::Flow),
        def(
            "branch",
            Shape::List(&Shape::Object(&BRANCH), (1, MAX_ENTRIES)),
            "Goes on with the first entry that holds. An entry without `if` always holds and comes last.",
            r#"[{"if": "result == approved", "then": "post"}, {"then": "shelve"}]"#,
        )
        .only(Only::Flow),
        def("parallel", Shape::List(&Shape::Text, (1, usize::MAX)), "Steps that all follow.", r#"["a", "b"]"#)
            .only(Only::Flow),
        def(
            "join",
            Shape::Text,
            "With `parallel`: the step where its branches meet. On its own: the same as `next`.",
            "",
        )
        .only(Only::Flow),
        def("done", Shape::Flag, "Ends the path; the result of the step becomes the output of the run.", "true")
            .only(Only::Flow),
        def(
            "on_error",
            Shape::Text,
            "What follows when the step fails: `fail` (default) ends the run, `continue` goes on as after a success, \
             and the name of a step goes there.",
            r#""continue""#,
        )
        .only(Only::Flow),
        TIMEOUT,
        Def { kinds: &[K::Http, K::Tool, K::Code, K::Query, K::Child, K::Gate], ..TIMEOUT_S },
        TIMEOUT_SECONDS,
        RETRIES,
        MAX_ATTEMPTS,
        RETRY,
        AT_MOST_ONCE,
        ON_UNKNOWN,
    ],
)
.rules(ATTEMPT_RULES);

pub const ATTEMPT_RULES: &[Rule] = &[
    Rule::AtMostOne(&["timeout", "timeout_s", "timeoutSeconds"]),
    Rule::AtMostOne(&["retries", "retry_attempts", "maxAttempts", "max_attempts"]),
    Rule::Bars("at_most_once", "true", &["retries", "retry_attempts", "maxAttempts", "max_attempts", "retry"]),
    Rule::OnlyWith("on_unknown", "at_most_once", "true"),
    Rule::AtMostOne(&["tool", "toolName"]),
    Rule::AtMostOne(&["body", "form"]),
];

const TEMPLATE: Shape = Shape::Form(r"^\s*\{\{");
// References to statics must be constants of their own to live long enough.
const PARAMS: Shape = Shape::Either(&[Shape::List(&Shape::Any, ANY_NUMBER), Shape::Object(&super::UNKNOWN), TEMPLATE]);
const FORM_FIELDS: Shape = Shape::Either(&[Shape::Object(&super::UNKNOWN), Shape::Text]);
const ARGUMENTS: Shape = Shape::Either(&[Shape::Object(&super::UNKNOWN), TEMPLATE]);
const WAITS: Shape = Shape::Either(&[Shape::True, Shape::Object(&WEBHOOK_WAIT)]);
const A_SCHEMA: Shape = Shape::Either(&[Shape::Flag, Shape::Object(&JSON_SCHEMA)]);
pub const PERSON: Shape = Shape::Form(r"\S");
pub const CODE_DOC: &str = "JavaScript, never a template. It receives `ctx` with the input and earlier results, and \
                            returns the result.";
pub const CODE_EXAMPLE: &str = r#""return ctx.input.amount * 2;""#;

pub const URL: Def = def(
    "url",
    Shape::Form(r"^\s*([hH][tT][tT][pP][sS]?://|[hHtTpPsS:/]*\{\{)"),
    "Calls this absolute http or https URL, which may have templates.",
    r#""https://api.example/orders/{{input.id}}""#,
)
.on(&[K::Http]);
pub const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
pub const METHOD: Def = def("method", Shape::AnyCase(METHODS), "The HTTP method. Default: POST.", "").on(&[K::Http]);
pub const HEADERS: Def = def(
    "headers",
    Shape::Map(&Map {
        value: Shape::Either(&[Shape::Form(r"^[^\r\n]*$"), Shape::Flag, Shape::Number]),
        keys: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        bounds: ANY_NUMBER,
    }),
    "Headers of the request; the values may be templates.",
    r#"{"authorization": "Bearer {{secrets.API_KEY}}"}"#,
)
.on(&[K::Http]);
pub const BODY: Def =
    def("body", Shape::Any, "The body of the request, a template of any shape.", r#"{"id": "{{input.id}}"}"#)
        .on(&[K::Http]);
pub const FORM: Def = def(
    "form",
    FORM_FIELDS,
    "The body as `application/x-www-form-urlencoded`: an object with templates, or one template.",
    r#"{"amount": "{{input.amount}}"}"#,
)
.on(&[K::Http]);
pub const TOOL: Def = def(
    "tool",
    Shape::Constant,
    "Calls this tool: a built-in one, one of an MCP server, or a workflow that is exposed as a tool.",
    r#""echo""#,
)
.also(&["toolName"])
.on(&[K::Tool]);
pub const ARGS: Def = def(
    "args",
    ARGUMENTS,
    "The arguments of the tool: an object with templates, or one template.",
    r#"{"text": "Hello, {{input.name}}!"}"#,
)
.on(&[K::Tool]);
pub const MEMORY: Def =
    def("memory", Shape::Size, "The memory that the code may use: 1MB to 4GB. Default: 64MB.", r#""128MB""#)
        .on(&[K::Code]);
pub const WAIT: Def = def(
    "wait_for_webhook",
    WAITS,
    "Waits until the step's own URL is called. `true` waits until the run times out.",
    r#"{"timeout": "1h"}"#,
)
.on(&[K::Webhook]);
pub const WORKFLOW_NAME: Def =
    def("workflow", Shape::Constant, "Starts this workflow and waits for its end.", r#""send-invoice""#)
        .on(&[K::Child]);
pub const INPUT: Def =
    def("input", Shape::Any, "The input of the child run, a template.", r#"{"id": "{{input.id}}"}"#).on(&[K::Child]);

pub const TIMEOUT: Def = def(
    "timeout",
    Shape::Positive(Unit::Millis),
    "The longest time of one attempt. A bare number is milliseconds.",
    r#""30s""#,
)
.on(CALLS);
pub const TIMEOUT_S: Def =
    def("timeout_s", Shape::Positive(Unit::Seconds), "The timeout; a bare number is seconds.", "30").on(CALLS);
pub const TIMEOUT_SECONDS: Def =
    def("timeoutSeconds", Shape::Positive(Unit::Seconds), "The timeout; a bare number is seconds.", "30").on(CALLS);
pub const RETRIES: Def =
    def("retries", Shape::Whole(0, limits::MAX_ATTEMPTS - 1), "How many times a failed attempt is repeated.", "3")
        .also(&["retry_attempts"])
        .on(CALLS);
pub const MAX_ATTEMPTS: Def =
    def("maxAttempts", Shape::Whole(1, limits::MAX_ATTEMPTS), "How many attempts there are, the first included.", "3")
        .also(&["max_attempts"])
        .on(CALLS);
pub const RETRY: Def = def(
    "retry",
    Shape::Object(&RETRY_POLICY),
    "How failed attempts are repeated.",
    r#"{"attempts": 5, "backoff": "exponential", "first": "1s", "cap": "1m", "on": ["timeout", "5xx"]}"#,
)
.on(CALLS);
pub const AT_MOST_ONCE: Def = def(
    "at_most_once",
    Shape::Flag,
    "Never repeats the call, not even when its node was lost during it. Default: false.",
    "true",
)
.on(CALLS);
pub const ON_UNKNOWN: Def = def(
    "on_unknown",
    Shape::Choice(&["fail", "ask"]),
    "With `at_most_once`: what happens if it is unknown whether the call was made. Default: fail.",
    "",
)
.on(CALLS);

static RETRY_POLICY: Object = Object::of(
    "retry",
    "How failed attempts are repeated.",
    &[
        def("attempts", Shape::Whole(1, limits::MAX_ATTEMPTS), "How many attempts, the first included.", "5"),
        def(
            "backoff",
            Shape::Either(&[
                Shape::Choice(&["exponential", "fixed"]),
                Shape::List(&Shape::Length(Unit::Seconds), (1, limits::MAX_ATTEMPTS as usize)),
            ]),
            "`exponential` doubles the delay, `fixed` keeps it, and a list names each delay.",
            r#""exponential""#,
        ),
        def("first", Shape::Length(Unit::Seconds), "The first delay. Default: 1s.", r#""1s""#).also(&["delay"]),
        def("cap", Shape::Length(Unit::Seconds), "The longest delay. Default: 1h.", r#""5m""#).also(&["max"]),
        def("jitter", Shape::Flag, "Varies delays at random. Default: false.", "true"),
        def(
            "on",
            Shape::OneOrMore(
                &Shape::Either(&[
                    Shape::AnyCase(&["timeout", "network", "any", "4xx", "5xx"]),
                    Shape::Count(100, 599),
                    Shape::Form(r"^\s*\+?0*[1-5][0-9][0-9]\s*$"),
                ]),
                (0, MAX_RETRY_RULES),
            ),
            "Which failures are repeated: `timeout`, `network`, `any`, `4xx`, `5xx` or a status code.",
            r#"["timeout", 429, "5xx"]"#,
        ),
    ],
)
.rules(&[
    Rule::AtMostOne(&["first", "delay"]),
    Rule::AtMostOne(&["cap", "max"]),
    Rule::Bars("backoff", r#""fixed""#, &["cap", "max"]),
    Rule::Bars("backoff", "[]", &["first", "delay", "cap", "max"]),
]);

pub const QUERY_FIELDS: [Def; 6] = [
    def("connection", Shape::Constant, "The name of a connection.", r#""crm""#).on(&[K::Query]),
    def("sql", PERSON, "The statement, never a template: pass values in `params`.", r#""select 1""#).on(&[K::Query]),
    def("saved", Shape::Constant, "A saved query, in place of `connection` and `sql`.", r#""by-customer""#)
        .also(&["dataQueryID"])
        .on(&[K::Query]),
    def("params", PARAMS, "The parameters of the statement, a template.", r#"["{{input.id}}"]"#)
        .also(&["inputValues"])
        .on(&[K::Query]),
    def("write", Shape::Flag, "Allows the statement to change data. Default: false.", "true").on(&[K::Query]),
    def("max_rows", Shape::Whole(1, limits::MAX_ROWS), "Fails if there are more rows. Default: 1000.", "100")
        .on(&[K::Query]),
];

static QUERY: Object = Object::of("query", "One SQL statement, or a saved query.", &QUERY_FIELDS).rules(&[
    Rule::AtMostOne(&["saved", "dataQueryID"]),
    Rule::AtMostOne(&["params", "inputValues"]),
    Rule::One(&["saved", "dataQueryID", "connection"]),
    Rule::One(&["saved", "dataQueryID", "sql"]),
]);

static ENTRY: Object = Object::of(
    "conditionEntry",
    "An entry of a condition.",
    &[
        def("id", Shape::Constant, "What becomes the body of the step.", r#""big""#),
        def("if", Shape::Condition, "When the entry is chosen. Without it, always.", r#""input.amount > 100""#),
    ],
)
.rules(&[Rule::Some(&["id"])]);

static BRANCH: Object = Object::of(
    "branchEntry",
    "An entry of a branch.",
    &[
        def(
            "if",
            Shape::Condition,
            "When the entry is chosen. `result` is the result of the step.",
            "\"result == ok\"",
        ),
        def("then", Shape::Text, "The step that follows.", r#""post""#).also(&["else", "next"]),
    ],
)
.rules(&[Rule::One(&["then", "else", "next"])]);

static WEBHOOK_WAIT: Object = Object::of(
    "webhookWait",
    "How long to wait for the call.",
    &[def("timeout", Shape::Positive(Unit::Millis), "The longest wait. A bare number is milliseconds.", r#""1h""#)],
);

pub const GATE_FIELDS: [Def; 10] = [
    def("message", Shape::Text, "What the approvers read, with templates.", r#""Pay {{input.amount}}?""#)
        .on(&[K::Gate]),
    def("approvers", Shape::OneOrMore(&PERSON, ANY_NUMBER), "Who may answer: users or roles.", r#"["ann"]"#)
        .on(&[K::Gate]),
    def("escalate_to", Shape::OneOrMore(&PERSON, ANY_NUMBER), "Who may answer later.", r#"["boss"]"#).on(&[K::Gate]),
    def("notify", Shape::OneOrMore(&PERSON, ANY_NUMBER), "Whom to tell, if not the approvers.", r#"["bob"]"#)
        .on(&[K::Gate]),
    def(
        "form",
        A_SCHEMA,
        "A JSON Schema of what approvers fill in.",
        r#"{"type": "object", "properties": {"reason": {"type": "string"}}}"#,
    )
    .on(&[K::Gate]),
    def("allow_self", Shape::Flag, "Whether the user who started the run may approve. Default: true.", "false")
        .on(&[K::Gate]),
    def("approvals", Shape::Whole(1, MAX_APPROVALS), "How many approvals are needed. Default: 1.", "2").on(&[K::Gate]),
    def("timeout", Shape::Positive(Unit::Millis), "How long to wait. A bare number is milliseconds.", r#""2h""#)
        .on(&[K::Gate]),
    def(
        "on_timeout",
        Shape::Choice(&["deny", "approve", "escalate"]),
        "What happens without an answer. Default: deny.",
        "",
    )
    .on(&[K::Gate]),
    def(
        "escalate_after",
        Shape::Positive(Unit::Seconds),
        "When `escalate_to` may answer too. A bare number is seconds. Default: after the timeout.",
        r#""30m""#,
    )
    .on(&[K::Gate]),
];

pub const GATE_RULES: [Rule; 2] =
    [Rule::Asks("on_timeout", r#""escalate""#, &["escalate_to"]), Rule::Needs("escalate_after", &["escalate_to"])];

pub static APPROVAL: Object = Object::of("approval", "A question to people.", &GATE_FIELDS).rules(&GATE_RULES);
