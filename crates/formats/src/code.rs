//! Every fault this crate can report, with its stable code and one line for `docs/faults.md`.
//!
//! Codes never change their meaning; tools and people look them up. The graph builder in `core` has some of its own,
//! listed in [`CORE`] so that the document is complete.

macro_rules! codes {
    ($($name:ident $code:literal $meaning:literal;)*) => {
        $(pub const $name: &str = $code;)*
        /// Code and meaning of every fault found while reading.
        pub const ALL: &[(&str, &str)] = &[$(($code, $meaning)),*];
    };
}

codes! {
    BAD_ALIAS "bad-alias" "A YAML alias or merge key names nothing, or stands inside what it names.";
    BAD_BACKOFF "bad-backoff" "`retry.backoff` is not `exponential`, `fixed` or a list of pauses.";
    BAD_CHARACTER "bad-character" "A control character stands raw in the document.";
    BAD_CODE "bad-code" "The code of a `javascript` step cannot be read; the message has the line and column in the code.";
    BAD_CRON "bad-cron" "A cron expression cannot be read, or has no next time.";
    BAD_DURATION "bad-duration" "A length of time is not like `30s`, `5m`, `2h`, `1d`, nor a number where one is allowed.";
    BAD_ESCAPE "bad-escape" "A `\\` sequence in a JSON string does not exist, or is half of a surrogate pair.";
    BAD_EXPRESSION "bad-expression" "A condition is not an expression of the language.";
    BAD_HOST "bad-host" "An entry of `allow_hosts` is not a host name.";
    BAD_JSON "bad-json" "The text is not JSON from here on.";
    BAD_KEY "bad-key" "A YAML key is missing, or is an object, a list or an alias.";
    BAD_METHOD "bad-method" "An HTTP method that does not exist.";
    BAD_NAME "bad-name" "A name is empty, too long, or holds characters that names cannot hold.";
    BAD_NUMBER "bad-number" "A number is out of range here, or cannot be kept exactly.";
    BAD_PATTERN "bad-pattern" "The right side of `matches_regex` is not a regular expression.";
    BAD_SCHEMA "bad-schema" "A JSON Schema is not one.";
    BAD_TAG "bad-tag" "A YAML tag outside the core schema, or one its value does not fit.";
    BAD_TEMPLATE "bad-template" "A `{{…}}` is not closed, or what it holds is not an expression.";
    BAD_TIME "bad-time" "An instant is not of the form `2026-02-22T10:00:00Z`.";
    BAD_TIMEZONE "bad-timezone" "A time zone that the database of zones does not have.";
    BAD_URL "bad-url" "A URL is not an absolute http or https one.";
    BAD_VALUE "bad-value" "A value is not one of the few that are allowed here.";
    BAD_YAML "bad-yaml" "The text is not YAML from here on.";
    CYCLE "cycle" "Tasks need each other in a circle, so none of them can ever start.";
    DUPLICATE_KEY "duplicate-key" "A key is written twice in one object.";
    DUPLICATE_NAME "duplicate-name" "Two things that need different names have the same one.";
    EMPTY_BODY "empty-body" "A loop has no steps to repeat.";
    EMPTY_DOCUMENT "empty-document" "The document holds nothing.";
    END_HAS_EDGES "end-has-edges" "An edge leaves an `end` node.";
    FORK_LEAVES_LOOP "fork-leaves-loop" "A `parallel` has one branch that stays in a loop and one that leaves it.";
    LIMIT_BYTES "limit-bytes" "The document is larger than will be read.";
    LIMIT_DEPTH "limit-depth" "Objects, lists or loops are nested too deeply.";
    LIMIT_NODES "limit-nodes" "The document holds too many values, or too much text, once aliases are expanded.";
    LIMIT_STEPS "limit-steps" "The definition has too many steps or edges.";
    LOOP_BODY "loop-body" "The body of a `loop` node is entered or left other than through the node.";
    MANY_DIALECTS "many-dialects" "More than one of `tasks`, `flow` and `nodes` is given.";
    MANY_DOCUMENTS "many-documents" "A YAML file holds more than one document.";
    MANY_STEP_TYPES "many-step-types" "A step is of more than one type.";
    MANY_TRANSITIONS "many-transitions" "A flow step says in more than one way what comes next.";
    MISSING_FIELD "missing-field" "A required field is not there.";
    MISSING_URL "missing-url" "An HTTP step has no `url`.";
    NAME_MISMATCH "name-mismatch" "The `name` of a flow step differs from its key.";
    NO_DIALECT "no-dialect" "None of `tasks`, `flow` and `nodes` is given.";
    NO_STEP_TYPE "no-step-type" "Nothing says what a step does.";
    NOT_ALLOWED "not-allowed" "A field that this kind of step cannot have, or two fields that exclude each other.";
    NOT_CONSTANT "not-constant" "A template where the value must be known when the workflow is defined.";
    NOT_UTF8 "not-utf8" "The document is not UTF-8.";
    RESERVED_NAME "reserved-name" "A name that the engine uses itself.";
    SELF_NEED "self-need" "A task needs itself.";
    UNKNOWN_FIELD "unknown-field" "A field that nothing reads.";
    UNKNOWN_HANDLE "unknown-handle" "An edge leaves a node by a handle that the node does not have.";
    UNKNOWN_NODE_TYPE "unknown-node-type" "A `nodeType` that does not exist.";
    UNKNOWN_STEP "unknown-step" "A name that no step has.";
    UNREACHABLE_BRANCH "unreachable-branch" "An entry that stands behind the default one and can never be chosen.";
    UNREADABLE "unreadable" "The file cannot be read.";
    WRONG_TYPE "wrong-type" "A value of another type is needed here.";
}

/// Codes of `stepwell_core::graph::Fault` that are not among [`ALL`].
pub const CORE: &[(&str, &str)] = &[
    ("crosses-body", "An edge goes into or out of a loop body."),
    ("duplicate-step", "Two steps that see each other have the same name."),
    ("if-with-any", "A step that joins on any edge has an `if`."),
    ("irreducible-loop", "A cycle can be entered at more than one step."),
    ("misplaced-name", "An expression names something that has no value in this place."),
    ("no-start", "No step can start first."),
    ("no-steps", "The workflow has no steps."),
    ("not-before", "An expression reads a step that cannot have finished by then."),
    ("too-deep", "Loops are nested too deeply."),
    ("too-many-steps", "The definition has too many steps or edges."),
    ("unknown-name", "An expression begins with a name that stands for nothing."),
    ("unreachable-step", "No path leads to a step."),
];
