/**
 * Client of Stepwell, a durable workflow engine.
 *
 * ```ts
 * const stepwell = await Client.find();
 * const run = await stepwell.run("hello", { name: "Ann" });
 * ```
 */

export { Client } from "./client.js";
export type { Answer, CallOptions, Definition, NewSchedule, RunFilter, TriggerOptions } from "./client.js";
export type { WaitOptions, WorkflowFilter } from "./client.js";
export { findConfig } from "./config.js";
export type { Config, Where } from "./config.js";
export { ConnectionFailed, Problem, StepwellError, TimedOut } from "./problem.js";
export type { Json } from "./types.js";
export type * from "./schema.js";
export { InvalidSignature, answerWait, sign, verify } from "./webhooks.js";
export type { HeaderSource } from "./webhooks.js";
