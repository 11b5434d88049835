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
    BAD_ALIAS "bad-alias" "A YAML alias or merge key refers to nothing, or to something that contains it.";
    BAD_BACKOFF "bad-backoff" "`retry.backoff` is not `exponential`, `fixed` or a list of pauses.";
    BAD_CHARACTER "bad-character" "The document contains a raw control character.";
    BAD_CODE "bad-code" "The code of a `javascript` step has a syntax error; the message gives its line and column.";
    BAD_CRON "bad-cron" "A cron expression is malformed, or never matches.";
    BAD_DURATION "bad-duration" "A duration is not like `30s`, `5m`, `2h`, `1d`, nor a number where one is allowed.";
    BAD_ESCAPE "bad-escape" "A `\\` sequence in a JSON string does not exist, or is half of a surrogate pair.";
    BAD_EXPRESSION "bad-expression" "A condition is not a valid expression.";
    BAD_HOST "bad-host" "An entry of `allow_hosts` is not a host name.";
    BAD_JSON "bad-json" "The text is not valid JSON from here on.";
    BAD_KEY "bad-key" "A YAML key is missing, or is an object, a list or an alias.";
    BAD_METHOD "bad-method" "An HTTP method does not exist.";
    BAD_NAME "bad-name" "A name is empty, too long, or contains characters that names cannot have.";
    BAD_NUMBER "bad-number" "A number is out of range, or cannot be stored exactly.";
    BAD_PATTERN "bad-pattern" "The right side of `matches_regex` is not a valid regular expression.";
    BAD_SCHEMA "bad-schema" "A JSON Schema is invalid.";
    BAD_TAG "bad-tag" "A YAML tag is outside the core schema, or does not fit its value.";
    BAD_TEMPLATE "bad-template" "A `{{…}}` is not closed, or does not contain a valid expression.";
    BAD_TIME "bad-time" "A timestamp is not of the form `2026-02-22T10:00:00Z`.";
    BAD_TIMEZONE "bad-timezone" "A time zone is not in the time zone database.";
    BAD_URL "bad-url" "A URL is not an absolute http or https URL.";
    BAD_VALUE "bad-value" "A value is not one of the values allowed here.";
    BAD_YAML "bad-yaml" "The text is not valid YAML from here on.";
    CYCLE "cycle" "Tasks need each other in a cycle, so none can ever start.";
    DUPLICATE_KEY "duplicate-key" "A key appears twice in one object.";
    DUPLICATE_NAME "duplicate-name" "Two things that need different names have the same name.";
    EMPTY_BODY "empty-body" "A loop has no steps to repeat.";
    EMPTY_DOCUMENT "empty-document" "The document is empty.";
    END_HAS_EDGES "end-has-edges" "An edge leaves an `end` node.";
    FORK_LEAVES_LOOP "fork-leaves-loop" "A `parallel` has one branch that stays in a loop and one that leaves it.";
    LIMIT_BYTES "limit-bytes" "The document is too large.";
    LIMIT_DEPTH "limit-depth" "Objects, lists or loops are nested too deeply.";
    LIMIT_NODES "limit-nodes" "The document has too many values, or too much text, once aliases are expanded.";
    LIMIT_STEPS "limit-steps" "The definition has too many steps or edges.";
    LOOP_BODY "loop-body" "The body of a `loop` node is entered or left other than through the node.";
    MANY_DIALECTS "many-dialects" "The definition has more than one of `tasks`, `flow` and `nodes`.";
    MANY_DOCUMENTS "many-documents" "A YAML file contains more than one document.";
    MANY_STEP_TYPES "many-step-types" "A step has more than one type.";
    MANY_TRANSITIONS "many-transitions" "A flow step has more than one way to continue.";
    MISSING_FIELD "missing-field" "A required field is missing.";
    MISSING_URL "missing-url" "An HTTP step has no `url`.";
    NAME_MISMATCH "name-mismatch" "The `name` of a flow step differs from its key.";
    NO_DIALECT "no-dialect" "The definition has none of `tasks`, `flow` and `nodes`.";
    NO_STEP_TYPE "no-step-type" "A step has no type.";
    NOT_ALLOWED "not-allowed" "This kind of step cannot have the field, or two fields exclude each other.";
    NOT_CONSTANT "not-constant" "A template is used where the value must be known when the workflow is defined.";
    NOT_UTF8 "not-utf8" "The document is not UTF-8.";
    RESERVED_NAME "reserved-name" "A name is reserved for the engine.";
    SELF_NEED "self-need" "A task needs itself.";
    UNKNOWN_FIELD "unknown-field" "A field does not exist.";
    UNKNOWN_HANDLE "unknown-handle" "An edge leaves a node by a handle that the node does not have.";
    UNKNOWN_NODE_TYPE "unknown-node-type" "A `nodeType` does not exist.";
    UNKNOWN_STEP "unknown-step" "No step has this name.";
    UNREACHABLE_BRANCH "unreachable-branch" "An entry comes after the default entry, so it can never be chosen.";
    UNREADABLE "unreadable" "The file cannot be read.";
    WRONG_TYPE "wrong-type" "A value has the wrong type.";
}

/// Codes of `stepwell_core::graph::Fault` that are not among [`ALL`].
pub const CORE: &[(&str, &str)] = &[
    ("crosses-body", "An edge goes into or out of a loop body."),
    ("duplicate-step", "Two steps that are visible to each other have the same name."),
    ("if-with-any", "A step that joins on any edge has an `if`."),
    ("irreducible-loop", "A cycle can be entered at more than one step."),
    ("misplaced-name", "An expression uses a name that has no value in this place."),
    ("no-start", "No step can start first."),
    ("no-steps", "The workflow has no steps."),
    ("not-before", "An expression reads a step that cannot have ended by then."),
    ("too-deep", "Loops are nested too deeply."),
    ("too-many-steps", "The definition has too many steps or edges."),
    ("unknown-name", "An expression begins with an unknown name."),
    ("unreachable-step", "No path leads to a step."),
];
