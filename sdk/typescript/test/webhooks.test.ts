// Signatures by Standard Webhooks, with the engine as the other side, and answers to waits.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { InvalidSignature, Problem, answerWait, sign, verify } from "../src/index.js";
import { SECRET, shared } from "./harness.js";

const server = shared();

test("the published example is verified", async () => {
  const headers = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": "1614265330",
    "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const body = '{"test": 2432232314}';
  const at = { now: 1614265330 };
  await verify(body, headers, SECRET, at);
  await verify(new TextEncoder().encode(body), new Headers(headers), SECRET, { now: 1614265600 });
  const several = { ...headers, "Webhook-Signature": `v1,AAAA ${headers["Webhook-Signature"]}` };
  await verify(body, several, SECRET, at);
  const changes: Record<string, string>[] = [
    { "Webhook-Signature": "v1,AAAA" },
    { "Webhook-Signature": headers["Webhook-Signature"].replace("v1", "v2") },
    { "Webhook-Timestamp": "1614265331" },
    { "Webhook-Timestamp": "soon" },
    { "Webhook-Id": "msg_other" },
  ];
  for (const changed of changes) {
    await assert.rejects(verify(body, { ...headers, ...changed }, SECRET, at), InvalidSignature);
  }
  for (const now of [1614265330 - 301, 1614265330 + 301]) {
    await assert.rejects(verify(body, headers, SECRET, { now }), /too old/);
  }
  await assert.rejects(verify(body, {}, SECRET), /webhook-id is missing/);
  await assert.rejects(verify(`${body} `, headers, SECRET, at), InvalidSignature);
});

test("what the engine signs is verified", async () => {
  const client = await (await server()).client();
  const received: { headers: IncomingHttpHeaders; body: Buffer }[] = [];
  const receiver = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      received.push({ headers: request.headers, body: Buffer.concat(parts) });
      response.writeHead(204).end();
    });
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  await client.setSecret("WEBHOOK_SIGNING_SECRET", SECRET);
  try {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    await client.define({ name: "signing", tasks: { call: { url, body: { amount: 7 } } } });
    assert.equal((await client.run("signing", {}, { timeout: 30_000 })).status, "completed");
  } finally {
    await client.deleteSecret("WEBHOOK_SIGNING_SECRET");
    receiver.close();
  }
  assert.equal(received.length, 1);
  const { headers, body } = received[0]!;
  await verify(body, headers, SECRET);
  await assert.rejects(verify(body, headers, "whsec_b3RoZXI="), InvalidSignature);
});

test("a signed call starts a run", async () => {
  const client = await (await server()).client();
  await client.setSecret("HOOK", SECRET);
  await client.define({
    name: "on-call",
    trigger: { webhook: { verify: { secret: "HOOK" }, dedupe: { header: "webhook-id" } } },
    tasks: { say: { tool: "echo", args: { amount: "{{input.amount}}" } } },
  });
  const address = (await client.workflow("on-call")).webhooks![0]!;
  const body = '{"amount": 7}';
  const headers = { "content-type": "application/json", ...(await sign(body, "msg_1", SECRET)) };
  const accepted = await fetch(address, { method: "POST", headers, body });
  assert.equal(accepted.status, 202);
  assert.equal((await fetch(address, { method: "POST", headers, body: `${body} ` })).status, 401);
  const { data } = (await accepted.json()) as { data: { run_id: string } };
  assert.deepEqual((await client.wait(data.run_id, { timeout: 30_000 })).input, { amount: 7 });
});

test("a wait is answered once", async () => {
  const client = await (await server()).client();
  await client.define(`name: waiting
tasks:
  address: {tool: echo, args: {url: "{{wait.paid.url}}"}}
  paid: {needs: address, wait_for_webhook: true}
output: {paid: "{{tasks.paid.body.amount}}"}
`);
  const { run_id: id } = await client.trigger("waiting");
  for await (const event of client.watch(id)) {
    if (event.type === "finished" && event.step === "address") {
      break;
    }
  }
  const address: string = (await client.get(id)).tasks!["address"]!.output.url;
  await answerWait(address, { amount: 7 });
  assert.deepEqual((await client.wait(id, { timeout: 30_000 })).output, { paid: 7 });
  await assert.rejects(answerWait(address, { amount: 8 }), Problem);
});

test("an address that is not genuine is refused", async () => {
  const { url } = await server();
  await assert.rejects(answerWait(`${url.replace(/\/$/, "")}/wh/run_0000.paid.x`), /not-found/);
});
