// Definitions on virtual time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type SimulateOptions, simulate as simulateWith } from "../src/testing.js";
import { BINARY } from "./harness.js";

const PAY = `name: pay
tasks:
  ask: {approval: {message: "Pay?", timeout: 1h}}
  send: {needs: ask, url: https://bank.example/pay, body: {amount: "{{input.amount}}"}, retries: 2}
output: {receipt: "{{tasks.send.body.id ?? 'none'}}"}
`;

const simulate = (definition: string | Record<string, unknown>, input: unknown = {}, options: SimulateOptions = {}) =>
  simulateWith(definition, input, { binary: BINARY, ...options });

test("a run ends as its calls and answers say", async () => {
  const calls = { send: [{ status: 503 }, { body: { id: "r1" } }] };
  const run = await simulate(PAY, { amount: 5 }, { calls, answers: { ask: { answer: "approve", after: "10m" } } });
  assert.deepEqual([run.status, run.output, run.path], ["completed", { receipt: "r1" }, ["ask", "send"]]);
  assert.ok(run.took > 600_000 && run.took < 700_000);
  const late = await simulate(PAY, {}, { answers: { ask: "timeout" } });
  assert.deepEqual([late.status, late.took], ["cancelled", 3_600_000]);
  const failed = await simulate(PAY, { amount: 5 }, { calls: { send: { status: 400 } }, answers: { ask: "approve" } });
  assert.deepEqual([failed.status, failed.error?.code], ["failed", "http_400"]);
});

test("a definition may be an object", async () => {
  const run = await simulate({ name: "sleeping", tasks: { nap: { sleep: "3d" } } });
  assert.equal(run.took, 3 * 24 * 3_600_000);
});

test("what is missing is named", async () => {
  const answers = { ask: "approve" };
  const failed = (message: RegExp) => ({ name: "SimulationFailed", message });
  await assert.rejects(simulate(PAY, { amount: 5 }, { answers }), failed(/step "send" makes a call/));
  await assert.rejects(simulate("name: a\ntasks: {b: {tol: echo}}"), failed(/did you mean/));
  await assert.rejects(simulate(PAY, { amount: 5 }, { calls: { sned: { status: 400 } } }), failed(/sned/));
  await assert.rejects(simulate(PAY, {}, { binary: "/no/such/stepwell" }), /cannot be started/);
});
