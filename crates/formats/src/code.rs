//! The faults this crate can report, with a stable code and one line for `docs/faults.md`.
//!
//! The meaning of a code never changes; tools and people look codes up. The graph builder in `core` has some codes of
//! its own, listed in [`CORE`] so that the document is complete.

macro_rules! codes {
    ($($name:ident $code:literal $meaning:literal;)*) => {
        $(pub const $name: &str = $code;)*
        /// Code and meaning of every fault found while reading.
        pub const ALL: &[(&str, &str)] = &[$(($code, $meaning)),*];
    };
}

codes! {
    BAD_ALIAS "bad-alias" "A YAML alias or merge key has no anchor, or is inside the value it refers to.";
    BAD_BACKOFF "bad-backoff" "`retry.backoff` is not `exponential`, `fixed` or a list of delays.";
    BAD_CHARACTER "bad-character" "The document contains a raw control character.";
    BAD_CODE "bad-code" "The code of a `javascript` step cannot be parsed; the message has its line and column.";
    BAD_CRON "bad-cron" "A cron expression is invalid, or never fires.";
    BAD_DURATION "bad-duration" "A duration is not like `30s`, `5m`, `2h` or `1d`, nor a number where one is allowed.";
    BAD_ESCAPE "bad-escape" "An escape in a JSON string is invalid, or is half of a surrogate pair.";
    BAD_EXPRESSION "bad-expression" "A condition is not a valid expression.";
    BAD_HOST "bad-host" "An entry of `allow_hosts` is not a host name.";
    BAD_JSON "bad-json" "The text is not valid JSON.";
    BAD_KEY "bad-key" "A YAML key is missing, or is an object, a list or an alias.";
    BAD_METHOD "bad-method" "An HTTP method does not exist.";
    BAD_NAME "bad-name" "A name is empty, too long, or contains characters that are not allowed in names.";
    BAD_NUMBER "bad-number" "A number is out of range, or cannot be represented exactly.";
    BAD_PATTERN "bad-pattern" "The right side of `matches_regex` is not a regular expression.";
    BAD_SCHEMA "bad-schema" "A JSON Schema is invalid.";
    BAD_TAG "bad-tag" "A YAML tag is not in the core schema, or does not fit its value.";
    BAD_TEMPLATE "bad-template" "A `{{…}}` is not closed, or its content is not a valid expression.";
    BAD_TIME "bad-time" "A time is not of the form `2026-02-22T10:00:00Z`.";
    BAD_TIMEZONE "bad-timezone" "A time zone is not in the time zone database.";
    BAD_URL "bad-url" "A URL is not an absolute http or https URL.";
    BAD_VALUE "bad-value" "A value is not one of the allowed values.";
    BAD_YAML "bad-yaml" "The text is not valid YAML.";
    CYCLE "cycle" "Tasks need each other in a cycle, so none of them can start.";
    DUPLICATE_KEY "duplicate-key" "A key is written twice in one object.";
    DUPLICATE_NAME "duplicate-name" "Two things have the same name but need different names.";
    EMPTY_BODY "empty-body" "A loop has no steps to repeat.";
    EMPTY_DOCUMENT "empty-document" "The document is empty.";
    END_HAS_EDGES "end-has-edges" "An edge leaves an `end` node.";
    FORK_LEAVES_LOOP "fork-leaves-loop" "One branch of a `parallel` stays in a loop and another leaves it.";
    LIMIT_BYTES "limit-bytes" "The document is too large.";
    LIMIT_DEPTH "limit-depth" "Objects, lists or loops are nested too deeply.";
    LIMIT_NODES "limit-nodes" "The document contains too many values or too much text after alias expansion.";
    LIMIT_SCHEMA "limit-schema" "A JSON Schema is too large, nested too deeply, or expands to too much.";
    LIMIT_STEPS "limit-steps" "The definition has too many steps or edges.";
    LOOP_BODY "loop-body" "The body of a `loop` node is entered or left other than through the node.";
    MANY_DIALECTS "many-dialects" "More than one of `tasks`, `flow` and `nodes` is given.";
    MANY_DOCUMENTS "many-documents" "A YAML file contains more than one document.";
    MANY_STEP_TYPES "many-step-types" "A step has more than one type.";
    MANY_TRANSITIONS "many-transitions" "A flow step has more than one transition.";
    MISSING_FIELD "missing-field" "A required field is missing.";
    MISSING_HERE "missing-here" "Warning: a step uses something that this installation does not have.";
    MISSING_URL "missing-url" "An HTTP step has no `url`.";
    NAME_MISMATCH "name-mismatch" "The `name` of a flow step differs from its key.";
    NO_DIALECT "no-dialect" "None of `tasks`, `flow` and `nodes` is given.";
    NO_STEP_TYPE "no-step-type" "A step has no type.";
    NOT_ALLOWED "not-allowed" "A field is not allowed on this kind of step, or excludes another field.";
    NOT_CONSTANT "not-constant" "A template is used where the value must be known when the workflow is defined.";
    NOT_UTF8 "not-utf8" "The document is not UTF-8.";
    RESERVED_NAME "reserved-name" "A name is reserved for the engine.";
    SELF_NEED "self-need" "A task needs itself.";
    SUSPICIOUS_DURATION "suspicious-duration" "Warning: a bare number is an implausible duration in the unit of its field.";
    TOOL_NAME_TAKEN "tool-name-taken" "The name that `expose_as_tool` gives the workflow belongs to another tool.";
    UNKNOWN_FIELD "unknown-field" "A field is unknown.";
    UNKNOWN_HANDLE "unknown-handle" "An edge leaves a node from a handle that the node does not have.";
    UNKNOWN_NODE_TYPE "unknown-node-type" "A `nodeType` does not exist.";
    UNKNOWN_STEP "unknown-step" "A name refers to no step.";
    UNREACHABLE_BRANCH "unreachable-branch" "An entry comes after the default one and can never be chosen.";
    UNREADABLE "unreadable" "The file cannot be read.";
    WRONG_TYPE "wrong-type" "A value has the wrong type.";
}

/// Codes of `stepwell_core::graph::Fault` that are not among [`ALL`].
pub const CORE: &[(&str, &str)] = &[
    ("crosses-body", "An edge goes into or out of a loop body."),
    ("duplicate-step", "Two steps in the same scope have the same name."),
    ("hyphen-in-name", "Warning: a hyphen without spaces is a part of a name, where a subtraction may be meant."),
    ("if-with-any", "A step that joins on any edge has an `if`."),
    ("irreducible-loop", "A cycle can be entered at more than one step."),
    ("misplaced-name", "An expression names something that has no value there."),
    ("no-start", "No step can start first."),
    ("no-steps", "The workflow has no steps."),
    ("not-before", "An expression reads a step that cannot have finished by then."),
    ("unknown-name", "An expression begins with an unknown name."),
    ("unreachable-step", "No path leads to a step."),
];
