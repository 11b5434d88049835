// What methods take and return, beside the types that are made from the description of the API.

export type * from "./schema.js";

export type Json = unknown;

/** The statuses of a run that has ended. It can still be retried. */
export const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "timeout"]);
