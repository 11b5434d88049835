//! Bounds on all input, in one place, so that a reader sees the most the engine ever has to hold.

use crate::time::Millis;

/// Bytes of one definition document.
pub const MAX_DOCUMENT_BYTES: usize = 4 * 1024 * 1024;
/// Nesting of objects and lists in a document.
pub const MAX_DEPTH: usize = 64;
/// Values in a document after alias expansion.
pub const MAX_NODES: usize = 500_000;
/// Steps in one definition, bodies included.
pub const MAX_STEPS: usize = 10_000;
/// Edges in one definition.
pub const MAX_EDGES: usize = 100_000;
/// Bytes of a step or workflow name.
pub const MAX_NAME_BYTES: usize = 128;
/// Nesting of loops and `for_each` bodies.
pub const MAX_SCOPE_DEPTH: usize = 8;
/// Faults reported for one document; the rest are counted.
pub const MAX_FAULTS: usize = 100;
/// Items of one `for_each`, and the highest `max_iterations` a definition can set.
pub const MAX_ITERATIONS: u32 = 100_000;
/// Passes of a loop if the definition sets no limit.
pub const DEFAULT_ITERATIONS: u32 = 1_000;
/// Passes and items of one run, over all its loops.
pub const MAX_INSTANCES: usize = 100_000;
/// Bytes of JSON in one payload that the planner assembles from others.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;
/// Nesting of such a payload: what is written must be readable.
pub const MAX_PAYLOAD_DEPTH: usize = 120;
/// Rows that one query may return: the highest value a definition can set, and the default.
pub const MAX_ROWS: u32 = 100_000;
pub const DEFAULT_ROWS: u32 = 1_000;
/// The longest `Retry-After` that is honoured.
pub const MAX_RETRY_AFTER: Millis = Millis::DAY;
/// The highest number of attempts a step can set.
pub const MAX_ATTEMPTS: u32 = 100;
/// How many times in a row the node of a step may be lost. Then the step is quarantined: a person decides.
pub const MAX_LOSSES: u8 = 3;
/// `for_each` items open at a time if the definition sets no limit.
pub const DEFAULT_PARALLEL: u32 = 10;
/// How long a run may take if the definition sets no limit.
pub const DEFAULT_MAX_DURATION: Millis = Millis(30 * Millis::DAY.0);
/// How long a finished run is kept if the definition sets no retention.
pub const DEFAULT_RETENTION: Millis = Millis(30 * Millis::DAY.0);
/// The longest retry delay unless the definition sets another cap.
pub const DEFAULT_BACKOFF_CAP: Millis = Millis::from_secs(3_600);
/// Bytes of a result that expressions can read; a longer body is stored truncated.
pub const MAX_READABLE_BODY: usize = 256 * 1024;
/// Decisions of one transition: steps started and skipped, items opened, passes and items closed.
pub const TRANSITION_DECISIONS: u32 = 1_000;
/// Weight of the payloads that one transition adds; see [`crate::value::weight`].
pub const TRANSITION_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes that the expressions and templates of one transition read or copy: about 50 ms.
pub const TRANSITION_WORK: u64 = 32 * 1024 * 1024;
/// Weight of all payloads of a run, unless the engine sets another limit.
pub const DEFAULT_RUN_BYTES: u64 = 256 * 1024 * 1024;
/// Steps in all passes and items of one run.
pub const MAX_STEP_STATES: usize = 500_000;
/// How long after a transition that left decisions open its run is continued, if the node that has it does not.
pub const CONTINUE_AFTER: Millis = Millis::from_secs(10);
