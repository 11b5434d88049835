/**
 * Client of Stepwell, a durable workflow engine.
 *
 * ```ts
 * const stepwell = await Client.find();
 * const run = await stepwell.run("hello", { name: "Ann" });
 * ```
 */

export { Client } from "./client.js";
export type { Answer, Definition, NewSchedule, RunFilter, TriggerOptions, WaitOptions } from "./client.js";
export { findConfig } from "./config.js";
export type { Config, Where } from "./config.js";
export { ConnectionFailed, Problem, StepwellError, TimedOut } from "./problem.js";
export type { Fault } from "./problem.js";
export type {
  Approval,
  ErrorView,
  Event,
  Json,
  Run,
  RunStatus,
  Schedule,
  Secret,
  Started,
  Step,
  Waiting,
  Workflow,
} from "./types.js";
export { InvalidSignature, answerWait, sign, verify } from "./webhooks.js";
export type { HeaderSource } from "./webhooks.js";
