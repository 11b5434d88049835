//! The fields of nodes and edges, as canvas editors save them.

use super::step::{
    APPROVAL, ARGS, AT_MOST_ONCE, BODY, CODE_DOC, CODE_EXAMPLE, FORM, GATE_FIELDS, HEADERS, INPUT, MAX_ATTEMPTS,
    MEMORY, METHOD, ON_UNKNOWN, PERSON, QUERY_FIELDS, RETRIES, RETRY, TIMEOUT, TIMEOUT_S, TIMEOUT_SECONDS, TOOL, URL,
    WAIT, WORKFLOW_NAME,
};
use super::{ANY_NUMBER, Def, K, Object, Rule, Shape, def};
use crate::graph::COSMETIC;
use stepwell_core::limits;

const MAX_ENTRIES: usize = 256;
const MAX_RULES: usize = 1_000;
pub const NODE_TYPES: &[&str] = &[
    "start",
    "end",
    "javascript",
    "dataQuery",
    "condition",
    "switch",
    "delay",
    "loop",
    "http",
    "tool",
    "approval",
    "wait_for_webhook",
    "workflow",
];
const OBJECT: Shape = Shape::Object(&super::UNKNOWN);

pub static NODE: Object = Object::of(
    "node",
    "A node. Its own fields may stand in the node itself, or in `nodeConfig`, `config` or `data`.",
    &[
        def("id", Shape::Form(super::step::STEP_KEYS), "The name of the node.", r#""fetch""#).also(&["nodeID"]),
        def("nodeType", Shape::Choice(NODE_TYPES), "What the node does.", r#""http""#),
        def("type", Shape::Any, "What the node does, unless `nodeType` says so.", r#""http""#),
        def("nodeConfig", OBJECT, "The fields of the node.", ""),
        def("config", OBJECT, "The fields of the node.", ""),
        def("data", OBJECT, "The fields of the node.", ""),
        def("isDisabled", Shape::Flag, "The node does nothing and succeeds. Default: false.", "true"),
        def("outputVariable", Shape::Text, "Also stores the result as `ctx.<name>`.", r#""people""#),
        def(
            "joinMode",
            Shape::Choice(&["all", "any"]),
            "`all` (default) waits for every incoming edge; `any` runs at the first edge taken.",
            "",
        ),
        def(
            "errorHandling",
            Shape::Choice(&["continue", "fail_workflow"]),
            "`continue` (default) lets edges decide; `fail_workflow` ends the run when the node fails.",
            "",
        ),
        URL,
        METHOD,
        HEADERS,
        BODY,
        FORM,
        TOOL,
        ARGS,
        def("code", Shape::Text, CODE_DOC, CODE_EXAMPLE).on(&[K::Code]),
        MEMORY,
        QUERY_FIELDS[0],
        QUERY_FIELDS[1],
        QUERY_FIELDS[2],
        QUERY_FIELDS[3],
        QUERY_FIELDS[4],
        QUERY_FIELDS[5],
        def(
            "branches",
            Shape::List(&Shape::Object(&BRANCH), (0, MAX_ENTRIES)),
            "The branches of a condition, tried in order.",
            r#"[{"id": "some", "condition": "ctx.people.total > 0"}]"#,
        )
        .on(&[K::Condition]),
        def("defaultBranch", Shape::Text, "The handle to take when no branch holds.", r#""none""#).on(&[K::Condition]),
        def("delayType", Shape::Choice(&["fixed", "dynamic", "until"]), "Default: the one whose field is present.", "")
            .on(&[K::Sleep]),
        def("delayMinutes", Shape::Any, "Minutes of a fixed delay; the amounts add up.", "5").on(&[K::Sleep]),
        def("delaySeconds", Shape::Any, "Seconds of a fixed delay; the amounts add up.", "30").on(&[K::Sleep]),
        def("delayMs", Shape::Any, "Milliseconds of a fixed delay; the amounts add up.", "250").on(&[K::Sleep]),
        def("delayVariable", Shape::Any, "The duration of a dynamic delay: a path or a template.", r#""ctx.pause""#)
            .on(&[K::Sleep]),
        def("untilTime", Shape::Any, "The time of a delay until it, or a template.", r#""2026-02-22T10:00:00Z""#)
            .on(&[K::Sleep]),
        def("sourceVariable", Shape::Text, "The list to walk: a path or a template.", r#""people.list""#)
            .on(&[K::Each]),
        def("itemVariable", Shape::Text, "Stores the item as `ctx.<name>`.", r#""person""#).on(&[K::Each]),
        def("indexVariable", Shape::Text, "Stores the position as `ctx.<name>`.", r#""n""#).on(&[K::Each]),
        def(
            "maxIterations",
            Shape::Whole(1, limits::MAX_ITERATIONS),
            "More items than this fail the node. Default: 1000.",
            "100",
        )
        .on(&[K::Each]),
        def("maxParallel", Shape::Whole(1, limits::MAX_ITERATIONS), "Items that run at a time. Default: 1.", "5")
            .on(&[K::Each]),
        def("onItemError", Shape::Choice(&["stop", "continue"]), "What to do when an item fails.", "").on(&[K::Each]),
        def(
            "status",
            Shape::Choice(&["success", "failure", "completed", "failed"]),
            "How the author calls this end. It does not affect how the run ends.",
            "",
        )
        .on(&[K::End]),
        def(
            "outputParameters",
            Shape::List(&Shape::Object(&PARAMETER), ANY_NUMBER),
            "What this end adds to the output of the run.",
            r#"[{"name": "people", "sourceVariable": "people"}]"#,
        )
        .on(&[K::End]),
        def(
            "approval",
            Shape::Either(&[Shape::True, Shape::Object(&APPROVAL)]),
            "The fields of the gate, as an object.",
            "",
        )
        .on(&[K::Gate]),
        def("notify_user", Shape::OneOrMore(&PERSON, ANY_NUMBER), "Whom to tell that an answer is needed.", "")
            .on(&[K::Gate]),
        GATE_FIELDS[0],
        GATE_FIELDS[1],
        GATE_FIELDS[2],
        GATE_FIELDS[3],
        GATE_FIELDS[4],
        GATE_FIELDS[5],
        GATE_FIELDS[6],
        GATE_FIELDS[8],
        GATE_FIELDS[9],
        WAIT,
        WORKFLOW_NAME,
        INPUT,
        Def { kinds: &[K::Http, K::Tool, K::Code, K::Query, K::Child, K::Gate, K::Webhook], ..TIMEOUT },
        Def { kinds: &[K::Http, K::Tool, K::Code, K::Query, K::Child, K::Gate], ..TIMEOUT_S },
        TIMEOUT_SECONDS,
        RETRIES,
        MAX_ATTEMPTS,
        RETRY,
        AT_MOST_ONCE,
        ON_UNKNOWN,
    ],
)
.rules(&[Rule::One(&["id", "nodeID"])])
.ignored(&COSMETIC);

static BRANCH: Object = Object::of(
    "nodeBranch",
    "A branch of a condition: `condition`, or `conditions` with `conditionLogic`.",
    &[
        def("id", Shape::Constant, "The handle of the branch.", r#""some""#),
        def("conditionLogic", Shape::Choice(&["AND", "OR", "and", "or"]), "How conditions combine. Default: AND.", "")
            .also(&["logic"]),
        def(
            "condition",
            Shape::Either(&[Shape::Condition, Shape::Object(&RULE)]),
            "An expression, or one rule.",
            r#""ctx.people.total > 0""#,
        ),
        def(
            "conditions",
            Shape::List(&Shape::Object(&RULE), (0, MAX_RULES)),
            "Rules.",
            r#"[{"leftValue": "{{ctx.people.total}}", "operator": "greater_than", "rightValue": 0}]"#,
        ),
    ],
)
.rules(&[Rule::Some(&["id"]), Rule::AtMostOne(&["conditionLogic", "logic"])])
.ignored(&["label", "color", "position"]);

static RULE: Object = Object::of(
    "nodeRule",
    "A rule: `leftValue operator rightValue`.",
    &[
        def("leftValue", Shape::Any, "A value, or a template.", r#""{{ctx.people.total}}""#),
        def("operator", Shape::Choice(OPERATORS), "How the values are compared.", ""),
        def("rightValue", Shape::Any, "A value, or a template.", "0"),
    ],
)
.rules(&[Rule::Some(&["operator"]), Rule::Some(&["leftValue"])])
.ignored(&["id"]);

/// Those of `core`; a test compares them.
pub const OPERATORS: &[&str] = &[
    "equals",
    "not_equals",
    "contains",
    "not_contains",
    "starts_with",
    "ends_with",
    "greater_than",
    "less_than",
    "greater_or_equal",
    "less_or_equal",
    "is_empty",
    "is_not_empty",
    "matches_regex",
    "expression",
];

static PARAMETER: Object = Object::of(
    "outputParameter",
    "A field of the output.",
    &[
        def("name", Shape::Constant, "The name of the field.", r#""people""#),
        def("sourceVariable", Shape::Text, "Where its value is: a path or a template.", r#""people""#),
        def("value", Shape::Any, "Its value, a template.", r#""{{ctx.people}}""#),
    ],
)
.rules(&[Rule::Some(&["name"]), Rule::One(&["sourceVariable", "value"])])
.ignored(&["id", "type", "description"]);

pub static EDGE: Object = Object::of(
    "edge",
    "An edge from one node to another.",
    &[
        def("source", Shape::Text, "The node that it leaves.", r#""fetch""#).also(&["upstreamNodeID"]),
        def("target", Shape::Text, "The node that it leads to.", r#""greet""#).also(&["downstreamNodeID"]),
        def(
            "sourceHandle",
            Shape::Text,
            "When it is taken: `output`, `success` or `default` (or no handle) after a success, `error` after a \
             failure, `denied`, `loop` and `done` of a loop, or the id of a condition's branch.",
            r#""error""#,
        ),
    ],
)
.rules(&[Rule::One(&["source", "upstreamNodeID"]), Rule::One(&["target", "downstreamNodeID"])])
.ignored(&COSMETIC);

/// Fields of an edge that are ignored beside [`COSMETIC`].
pub const EDGE_IGNORED: &[&str] = &["edgeID", "id", "type", "label", "data"];
