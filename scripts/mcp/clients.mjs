// The TypeScript SDKs as clients: the first generation over both transports, the second with the tasks extension.
// Arguments: the binary, the server's address, its data directory.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client as Older } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OlderStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OlderHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";

const [binary, url, data] = process.argv.slice(2);
const admin = readFileSync(`${data}/admin.key`, "utf8").trim();
const endpoint = new URL(`${url}/mcp`);
const info = { name: "stepwell-tests", version: "1" };

async function api(path, body) {
  const headers = { authorization: `Bearer ${admin}`, "content-type": "application/json" };
  const answer = await fetch(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert(answer.status < 300, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return (await answer.json()).data;
}

async function user(name) {
  const grants = ["workflow.define", "workflow.run", "workflow.read", "workflow.approve", "tool:*"];
  await api("/users", { name, grants });
  return (await api("/keys", { user: name, name: "test" })).key;
}

const gated = (name) => ({
  name,
  expose_as_tool: true,
  tasks: {
    ask: { approval: { message: "go on with {{input.what}}?" } },
    go: { needs: ["ask"], tool: "echo", args: { value: "{{input.what}}" } },
  },
  output: "{{tasks.go.body}}",
});

async function done(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert(!result.isError, JSON.stringify(result));
  return result.structuredContent;
}

const requestInit = (key) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } });
const command = (key) => ({ command: binary, args: ["mcp", "--data", data, "--api-key", key] });

// A second client answers what the first one started.
async function older(kind) {
  const key = await user(`older-${kind}`);
  const connect = async () => {
    const client = new Older(info, { capabilities: {} });
    await client.connect(kind === "http" ? new OlderHttp(endpoint, requestInit(key)) : new OlderStdio(command(key)));
    return client;
  };
  const [first, second] = [await connect(), await connect()];
  const name = `older-${kind}`;
  await done(first, "workflow_define", { definition: gated(name) });
  // Listing tools gives the client their output schemas, which it then holds results against.
  assert((await first.listTools()).tools.some((tool) => tool.name === name));
  const run = await done(first, "workflow_start", { workflow: name, input: { what: "this" }, wait_seconds: 20 });
  assert.equal(run.status, "paused");
  await second.listTools();
  const seen = await done(second, "workflow_status", { run_id: run.run_id });
  const [gate] = seen.approvals;
  await done(second, "workflow_approve", { run_id: run.run_id, step_name: gate.step, digest: gate.digest });
  const end = await done(first, "workflow_status", { run_id: run.run_id, wait_seconds: 20 });
  assert.equal(end.status, "completed");
  assert.equal((await done(first, "workflow_wait", { run_id: run.run_id })).status, "completed");
  assert.equal((await done(first, "step_result", { run_id: run.run_id, step_name: gate.step })).next, null);
  assert((await done(first, "workflow_events", { run_id: run.run_id })).events.every((event) => event.what));
  assert((await done(first, "tools_list", {})).tools.some((tool) => tool.name === "echo"));
  assert.equal((await done(first, "workflow_diff", { workflow: name })).changed, false);
  await Promise.all([first.close(), second.close()]);
  console.log(`ok: define, start, approve from a second client (TypeScript SDK 1, ${kind})`);
}

async function olderIsAsked() {
  const key = await user("older-asked");
  const client = new Older(info, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { decision: "deny" } }));
  await client.connect(new OlderStdio(command(key)));
  await done(client, "workflow_define", { definition: gated("asked") });
  const result = await client.callTool({ name: "asked", arguments: { what: "that" } });
  assert.equal(result.structuredContent.status, "cancelled", JSON.stringify(result));
  await client.close();
  console.log("ok: asked in the middle of a call (TypeScript SDK 1, stdio)");
}

// The tasks extension needs requests that the SDK does not make itself.
function dispatch(key, framing) {
  let ids = 0;
  return async (request) => {
    const name = request.params?.name ?? request.params?.taskId;
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": framing.protocolVersion,
      "mcp-method": request.method,
      ...(name === undefined ? {} : { "mcp-name": name }),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++ids, ...request });
    const answer = await (await fetch(endpoint, { method: "POST", headers, body })).json();
    return answer.error ? { kind: "error", error: answer.error } : { kind: "result", result: answer.result };
  };
}

async function newer(kind) {
  const key = await user(`newer-${kind}`);
  const framing = {
    protocolVersion: "2026-07-28",
    clientInfo: info,
    clientCapabilities: { elicitation: { form: {} } },
  };
  const client = new Client(info, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } });
  const transport =
    kind === "http" ? new StreamableHTTPClientTransport(endpoint, requestInit(key)) : new StdioClientTransport(command(key));
  await client.connect(transport);
  const name = `newer-${kind}`;
  await done(client, "workflow_define", { definition: gated(name) });
  if (kind === "http") {
    const questions = [];
    const session = createTaskSessionFromClient(client, {
      endpointId: "test",
      rawDispatch: dispatch(key, framing),
      v2RequestFraming: framing,
      onInputRequest: async (request, context) => {
        questions.push([context.inputId, request.params.message]);
        return { action: "accept", content: { decision: "approve" } };
      },
    });
    const execution = await session.callTool(name, { what: "tasks" });
    const { outcome } = await execution.settle();
    assert.equal(outcome.status, "completed", JSON.stringify(outcome));
    assert.equal(outcome.result.structuredContent.status, "completed");
    assert.equal(questions.length, 1);
    assert(questions[0][0].startsWith("ask#1@") && questions[0][1].includes("go on with tasks?"), questions);
    await session.close();
    console.log("ok: a run as a task, its gate as a question (TypeScript SDK 2, tasks extension)");
  } else {
    const asked = [];
    client.setRequestHandler("elicitation/create", async (request) => {
      asked.push(request.params.message);
      return { action: "accept", content: { decision: "approve" } };
    });
    const run = await done(client, "workflow_start", { workflow: name, input: { what: "x" }, wait_seconds: 20 });
    assert.equal(run.status, "completed", JSON.stringify(run));
    assert(asked.length === 1 && asked[0].includes("go on with x?"), asked);
    console.log("ok: asked in the answer of a call, without tasks (TypeScript SDK 2, stdio)");
  }
  await client.close();
}

await older("http");
await older("stdio");
await olderIsAsked();
await newer("http");
await newer("stdio");
