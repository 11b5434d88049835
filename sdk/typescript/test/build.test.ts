// Workflows in code: what is printed passes the check and does what the code says.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { BuildError, Workflow, and, eq, ne, not, orElse, ref } from "../src/build.js";
import { simulate } from "../src/testing.js";
import { BINARY, shared } from "./harness.js";

const running = shared();

/** What is printed passes `stepwell check`, and means the same as the object. */
function check(workflow: Workflow): void {
  const text = workflow.toYaml();
  const found = execFileSync(BINARY, ["check", "-"], { input: text, encoding: "utf8" });
  assert.match(found, /: ok: /, text);
  const drawn = (input: string) => execFileSync(BINARY, ["graph", "-", "--json"], { input, encoding: "utf8" });
  assert.equal(drawn(text), drawn(JSON.stringify(workflow)));
  assert.deepEqual(Workflow.load(workflow.toJSON()).toJSON(), workflow.toJSON());
}

function order(): Workflow {
  const order = new Workflow("order", { description: "Charges: and ships", labels: { team: "on", tier: 2 } });
  const body = { order: order.input.order_id };
  const charge = order.http("charge", "https://pay.example/charges", { body, retries: 3 });
  const message = `Ship ${charge.body.id} to ${orElse(order.input.name, "nobody")}?`;
  const ask = order.approval("ask", { message, timeout: "2d" });
  order.tool("ship", "ship_order", { payment: charge.body.id, n: charge.body.lines[0].count }, { needs: [ask] });
  order.tool("apologise", "send_mail", { text: charge.error.message }, { if: ne(charge.status, "success") });
  order.output = { payment: charge.body.id };
  return order;
}

test("references become templates and needs", () => {
  const tasks = order().toJSON()["tasks"] as Record<string, any>;
  assert.deepEqual(tasks["charge"].body, { order: "{{input.order_id}}" });
  assert.equal(tasks["charge"].needs, undefined);
  assert.deepEqual(tasks["ask"].needs, ["charge"]);
  const message = 'Ship {{tasks.charge.body.id}} to {{input.name ?? "nobody"}}?';
  assert.deepEqual(tasks["ask"].approval, { message, timeout: "2d" });
  assert.deepEqual(tasks["ship"].needs, ["ask", "charge"]);
  assert.equal(tasks["ship"].args.n, "{{tasks.charge.body.lines[0].count}}");
  assert.equal(tasks["apologise"].if, 'tasks.charge.status != "success"');
  check(order());
});

test("what is built runs as written", async () => {
  const calls = { charge: { body: { id: "p1", lines: [{ count: 2 }] } }, ship: { result: "ok" } };
  const answers = { ask: "approve" };
  const run = await simulate(order().toJSON(), { order_id: 7 }, { calls, answers, binary: BINARY });
  assert.deepEqual([run.status, run.path], ["completed", ["charge", "ask", "ship"]]);
  assert.deepEqual(run.output, { payment: "p1" });
  const failing = { charge: { status: 400 }, apologise: { result: "ok" } };
  const failed = await simulate(order().toYaml(), { order_id: 7 }, { calls: failing, binary: BINARY });
  assert.deepEqual(failed.path, ["charge", "apologise"]);
});

test("bodies see what is around them", () => {
  const mailing = new Workflow("mailing");
  const sql = "select * from people where team = $1";
  const people = mailing.query("people", { connection: "crm", sql, params: [mailing.input.team] });
  const sent = mailing.forEach(
    "send",
    people.body,
    (each) => {
      const text = each.javascript("text", "return 'Dear ' + ctx.item.name;");
      each.tool("mail", "send_mail", { to: each.item.email, text: text.body, of: people.body[0].team });
    },
    { max_parallel: 3 },
  );
  mailing.waitForWebhook("done", { timeout: "1h", needs: [sent] });
  mailing.sleep("pause", "5s", { if: and(eq(sent.status, "success"), not(eq(mailing.input.quick, true))) });
  mailing.workflow("report", "report", { sent: sent.body });
  const tasks = mailing.toJSON()["tasks"] as Record<string, any>;
  assert.deepEqual(tasks["send"].needs, ["people"]);
  assert.deepEqual(tasks["send"].tasks.mail.needs, ["text"]);
  check(mailing);
});

test("a saga undoes what was done", async () => {
  const trip = new Workflow("trip");
  const hotel = trip.tool("hotel", "book_hotel", { city: trip.input.city }, { retries: 1 });
  const flight = trip.tool("flight", "book_flight", { after: hotel.body.id }, { retries: 1 });
  const undone = and(eq(hotel.status, "success"), ne(flight.status, "success"));
  const undo = trip.tool("cancel hotel", "cancel_hotel", { id: hotel.body.id }, { if: undone });
  trip.output = { undone: undo.status };
  check(trip);
  const calls = { hotel: { body: { id: "h1" } }, flight: { status: 409 }, "cancel hotel": { body: {} } };
  const run = await simulate(trip.toJSON(), { city: "Oslo" }, { calls, binary: BINARY });
  assert.deepEqual([run.status, run.path], ["completed", ["hotel", "flight", "cancel hotel"]]);
  assert.deepEqual(run.output, { undone: "success" });
});

test("a definition in YAML loads and can be changed", async () => {
  const client = await (await running()).client();
  const each = "{needs: first, for_each: [1, 2], tasks: {one: {tool: echo, args: {n: '{{item}}'}}}}";
  await client.define(`name: loaded\ntasks:\n  first: {tool: echo, args: {n: 3}}\n  each: ${each} # by hand\n`);
  const loaded = Workflow.load((await client.workflow("loaded")).definition);
  loaded.output = { n: loaded.get("first").body.n };
  await client.define(loaded.toYaml(), { name: "loaded" });
  assert.deepEqual((await client.run("loaded", {}, { timeout: 30_000 })).output, { n: 3 });
  assert.throws(() => loaded.get("second"), /no step "second"/);
  assert.throws(() => Workflow.load({ name: "flow", flow: {} }), /tasks dialect/);
});

test("mistakes are found while building", () => {
  const workflow = new Workflow("wrong");
  workflow.tool("a", "echo");
  assert.throws(() => workflow.tool("a", "echo"), BuildError);
  workflow.tool("b", "echo", { x: ref("tasks").charge.body });
  assert.throws(() => workflow.toJSON(), /step "b" reads "charge", which is not there/);
  const other = new Workflow("other", { output: ref("tasks")["no such"].body });
  other.tool("a", "echo");
  assert.throws(() => other.toJSON(), /the output reads "no such"/);
});

test("odd names and texts survive", () => {
  const odd = new Workflow("odd: name", { labels: { on: "off", no: "1", "x y": "#1", true: "null" } });
  const args = { no: "yes", text: "a: b\n{{'x'}} # é", n: "007", empty: "", t: "~" };
  const step = odd.tool("Fetch people", "echo", args);
  odd.tool("second", "echo", { x: step.body["odd key"], list: [1, null, { a: step.body }] });
  const tasks = odd.toJSON()["tasks"] as Record<string, any>;
  assert.deepEqual(tasks["second"].needs, ["Fetch people"]);
  check(odd);
});
