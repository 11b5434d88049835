// The client against the real server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, ConnectionFailed, Problem, StepwellError, TimedOut } from "../src/index.js";
import type { Approval, EndEvent, Event } from "../src/index.js";
import { collect, shared, startServer, unique } from "./harness.js";

const server = shared(process.env["SDK_TEST_DATABASE"]);
const connect = async () => (await server()).client();

function echo(name: string) {
  return {
    name,
    tasks: { say: { tool: "echo", args: { text: "Hello, {{input.name ?? 'world'}}!" } } },
    output: { said: "{{tasks.say.body.text}}" },
  };
}

function gated(name: string): string {
  return `name: ${name}
tasks:
  ask: {approval: {message: "Pay {{input.amount}}?", form: {type: object}}}
  paid: {needs: ask, wait_for_webhook: true}
  thank: {needs: paid, tool: echo, args: {amount: "{{tasks.paid.body.amount}}"}}
output: {amount: "{{tasks.thank.body.amount}}"}
`;
}

/** The open gate of a run, once the run has reached it. */
async function gateOf(client: Client, run: string): Promise<Approval> {
  for await (const _ of client.watch(run)) {
    for await (const gate of client.approvals({ limit: 1 })) {
      if (gate.run_id === run) {
        return gate;
      }
    }
  }
  throw new Error("the run has no gate");
}

const fails = async (promise: Promise<unknown>): Promise<Problem> => {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error;
  }
  throw new Error("it succeeded");
};

test("a definition is stored, checked and versioned", async () => {
  const client = await connect();
  const name = unique("stored");
  assert.equal((await client.define(echo(name))).version, 1);
  assert.equal((await client.define({ ...echo(name), description: "another" }, { name })).version, 2);
  assert.equal((await client.workflow(name)).description, "another");
  const found = await fails(client.check(`name: ${name}\ntasks: {a: {tool: echo, needs: b}}`));
  assert.deepEqual([found.status, found.code], [422, "invalid-definition"]);
  const faults = found.errors.map((fault) => [fault.code, fault.path, fault.pointer]);
  assert.deepEqual(faults, [["unknown-step", "tasks.a.needs", "/tasks/a/needs"]]);
  assert.deepEqual(await client.check(echo(name)), []);
  const [warning] = await client.check({ ...echo(name), defaults: { timeout: 30 } });
  assert.equal(warning?.code, "suspicious-duration");
  const guessed = await fails(client.check({ name, tasks: { a: { tool: "echo", retry: 3 } } }));
  assert.ok(guessed.errors[0]?.fix?.path);
  assert.match(found.message, /tasks\.a\.needs/);
  await client.deleteWorkflow(name);
  assert.equal((await fails(client.workflow(name))).code, "not-found");
});

test("names that a URL would swallow are refused", async () => {
  const client = await connect();
  for (const name of ["", ".", ".."]) {
    await assert.rejects(client.deleteWorkflow(name), /not a valid name/);
  }
  await assert.rejects(client.trigger("a", {}, { labels: { team: "sales,support" } }), StepwellError);
});

test("operations without a method can be called", async () => {
  const client = await connect();
  const name = unique("called");
  await client.define(echo(name));
  const listed = await client.call("GET", ["workflows"], { query: { q: name, limit: 1 } });
  assert.deepEqual(listed.data.map((workflow: { name: string }) => workflow.name), [name]);
  assert.equal((await client.call("post", ["workflows", name, "pause"], { body: {} })).data.paused, true);
  assert.equal((await fails(client.call("POST", ["runs", "run_0000", "release"]))).code, "not-found");
});

test("a run is started and awaited", async () => {
  const client = await connect();
  const name = unique("run");
  await client.define(echo(name));
  const run = await client.run(name, { name: "Ann" }, { timeout: 30_000, labels: { team: "sales" } });
  assert.deepEqual([run.status, run.output], ["completed", { said: "Hello, Ann!" }]);
  assert.equal(run.labels?.["team"], "sales");
  const started = await client.trigger(name);
  assert.deepEqual((await client.wait(started.run_id, { timeout: 30_000 })).output, { said: "Hello, world!" });
});

test("a key starts one run", async () => {
  const client = await connect();
  const name = unique("once");
  await client.define(echo(name));
  const idempotencyKey = "order-7";
  const first = await client.trigger(name, { name: "a" }, { idempotencyKey });
  const again = await client.trigger(name, { name: "a" }, { idempotencyKey });
  assert.equal(first.run_id, again.run_id);
  const found = await fails(client.trigger(name, { name: "b" }, { idempotencyKey }));
  assert.deepEqual([found.code, found.isTemporary], ["idempotency-key-reused", false]);
});

test("lists go through all pages", async () => {
  const client = await connect();
  const name = unique("many");
  await client.define(echo(name));
  const ids = new Set<string>();
  for (let n = 0; n < 7; n += 1) {
    ids.add((await client.trigger(name)).run_id);
  }
  const found = await collect(client.runs({ workflow: name, limit: 2 }));
  assert.deepEqual(new Set(found.map((run) => run.run_id)), ids);
  assert.equal(found.length, 7);
  for (const id of ids) {
    assert.equal((await client.wait(id, { timeout: 30_000 })).status, "completed");
  }
  assert.equal((await collect(client.runs({ workflow: name, status: ["completed", "failed"], limit: 3 }))).length, 7);
  assert.ok((await collect(client.workflows({ limit: 1 }))).some((workflow) => workflow.name === name));
});

test("gates and webhooks are answered", async () => {
  const client = await connect();
  const name = unique("gated");
  await client.define(gated(name));
  const { run_id: id } = await client.trigger(name, { amount: 5 });
  assert.equal((await gateOf(client, id)).asks.message, "Pay 5?");
  await client.approve(id, "ask", { comment: "fine", data: { limit: 7 } });
  await client.deliver(id, "paid", { amount: 7 });
  assert.deepEqual((await client.wait(id, { timeout: 30_000 })).output, { amount: 7 });
});

test("a denied run can be retried and cancelled", async () => {
  const client = await connect();
  const name = unique("denied");
  await client.define(gated(name));
  const { run_id: id } = await client.trigger(name, { amount: 5 });
  await gateOf(client, id);
  await client.deny(id, "ask", { comment: "too much" });
  assert.equal((await client.wait(id, { timeout: 30_000 })).status, "cancelled");
  assert.ok(["running", "paused"].includes((await client.retry(id)).status));
  assert.equal((await client.cancel(id, "not today")).status, "cancelled");
  assert.equal((await fails(client.cancel(id))).statusNow, "cancelled");
});

test("secrets and schedules", async () => {
  const client = await connect();
  const secret = unique("SECRET").replace("-", "_");
  assert.equal((await client.setSecret(secret, "sesame-opens", { hosts: ["api.example.com"] })).version, 1);
  assert.deepEqual((await client.setSecret(secret, "sesame-closes")).hosts, ["api.example.com"]);
  const names = async () => (await collect(client.secrets())).map((found) => found.name);
  assert.ok((await names()).includes(secret));
  await client.deleteSecret(secret);
  assert.ok(!(await names()).includes(secret));
  const name = unique("nightly");
  await client.define({ ...echo(name), trigger: { cron: "30 3 * * *" } });
  const [schedule] = await client.schedules(name);
  assert.deepEqual([schedule?.cron, schedule?.next.length], ["30 3 * * *", 10]);
  assert.ok((await client.schedules()).some((found) => found.workflow === name));
  const added = await client.addSchedule(name, { cron: "@daily", timezone: "Europe/Paris", input: { text: "again" } });
  assert.ok(added.by !== undefined && (await client.schedules(name)).length === 2);
  await client.removeSchedule(added.id);
  assert.equal((await client.schedules(name)).length, 1);
});

test("a run begins later", async () => {
  const client = await connect();
  const name = unique("later");
  await client.define(echo(name));
  for (const when of [{ at: new Date(Date.now() + 86_400_000) }, { delay: 3_600_000 }]) {
    const started = await client.trigger(name, {}, when);
    assert.ok(started.status === "scheduled" && started.scheduled_for !== undefined);
    assert.equal((await client.cancel(started.run_id)).status, "cancelled");
  }
});

function endOf(events: Event[]): EndEvent {
  const last = events.at(-1);
  assert.ok(last?.type === "end");
  return last;
}

test("a watch ends with the run", async () => {
  const client = await connect();
  const name = unique("watched");
  await client.define(echo(name));
  const { run_id: id } = await client.trigger(name);
  const events = await collect(client.watch(id));
  assert.equal(events[0]?.type, "created");
  assert.equal(endOf(events).status, "completed");
  // The type of an event tells which fields it has.
  const finished = events.flatMap((event) => (event.type === "finished" ? [[event.step, event.status]] : []));
  assert.deepEqual(finished, [["say", "success"]]);
  assert.equal((await fails(collect(client.watch("run_0000")))).code, "not-found");
});

test("a watch survives a restart of the server", async () => {
  await using running = await startServer();
  const client = await running.client();
  await client.define(gated("gated"));
  const { run_id: id } = await client.trigger("gated", { amount: 1 });
  const seen: Event[] = [];
  let reached = () => {};
  const gate = new Promise<void>((resolve) => (reached = resolve));
  const over = (async () => {
    for await (const event of client.watch(id)) {
      seen.push(event);
      if (event.type !== "created") {
        reached();
      }
    }
  })();
  await gate;
  await running.kill();
  await running.start();
  await client.approve(id, "ask", { data: {} });
  await client.deliver(id, "paid", { amount: 2 });
  await over;
  assert.equal(endOf(seen).status, "completed");
  // Nothing is missing and nothing came twice: the log says what there is.
  const response = await fetch(`${running.url.replace(/\/$/, "")}/api/v1/runs/${id}/events?limit=1000`, {
    headers: { authorization: `Bearer ${await running.key()}` },
  });
  const logged = ((await response.json()) as { data: Event[] }).data.map((event) => event.type);
  assert.deepEqual(seen.slice(0, -1).map((event) => event.type), logged);
});

test("a wait ends at its deadline", async () => {
  const client = await connect();
  const name = unique("slow");
  await client.define(gated(name));
  await assert.rejects(client.run(name, { amount: 1 }, { timeout: 200 }), TimedOut);
});

test("a server that is gone is an error", async () => {
  const client = new Client({ url: "http://127.0.0.1:1", key: "key" });
  await assert.rejects(client.cancel("run_1"), ConnectionFailed);
});

test("a wrong key is a problem", async () => {
  const client = new Client({ url: (await server()).url, key: "sw_wrong" });
  const found = await fails(client.get("run_1"));
  assert.deepEqual([found.status, found.code], [401, "unauthorised"]);
});

test("server and key are found", async () => {
  const running = await server();
  const saved = { ...process.env };
  try {
    delete process.env["STEPWELL_URL"];
    delete process.env["STEPWELL_KEY"];
    process.env["STEPWELL_DATA"] = running.data;
    const client = await Client.find();
    assert.deepEqual([client.config.url, client.config.key], [running.url.replace(/\/$/, ""), await running.key()]);
    process.env["STEPWELL_URL"] = "https://flows.example.com/";
    // The key of the data directory is for servers on this machine.
    assert.equal((await Client.find()).config.key, undefined);
    process.env["STEPWELL_KEY"] = "sw_1";
    assert.deepEqual(new Client().config, { url: "https://flows.example.com", key: "sw_1" });
    delete process.env["STEPWELL_URL"];
    process.env["STEPWELL_DATA"] = "/nowhere";
    await assert.rejects(Client.find(), { name: "StepwellError", message: /STEPWELL_URL/ });
  } finally {
    process.env = saved;
  }
});
