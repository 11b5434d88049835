// The schema in an editor: completion, hover and faults on real files, with the language server that editors use for YAML.

"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { after, before, test } = require("node:test");
const { pathToFileURL } = require("node:url");
const { LanguageServer } = require("./lsp");
const { BUNDLED } = require("../src/association");

const ROOT = path.join(__dirname, "..", "..", "..");
const SERVER = path.join(path.dirname(require.resolve("yaml-language-server/package.json")), "bin/yaml-language-server");

let server;
let folder;

before(async () => {
  folder = fs.mkdtempSync(path.join(require("node:os").tmpdir(), "stepwell-schema-"));
  const settings = {
    yaml: {
      validate: true,
      completion: true,
      hover: true,
      schemas: { [pathToFileURL(BUNDLED).href]: ["*.yaml"] },
      schemaStore: { enable: false, url: "" },
      customTags: [],
    },
    "http": { proxy: "", proxyStrictSSL: false },
    "[yaml]": { "editor.tabSize": 2 },
    "editor": { detectIndentation: false },
    "files": { associations: {} },
  };
  server = new LanguageServer(process.execPath, [SERVER, "--stdio"], settings);
  await server.start();
});

after(async () => {
  await server.stop();
  fs.rmSync(folder, { recursive: true });
});

let opened = 0;

/** Opens a document; `|` marks the cursor. */
async function edit(marked) {
  const at = marked.indexOf("|");
  const text = at < 0 ? marked : marked.slice(0, at) + marked.slice(at + 1);
  const before = text.slice(0, Math.max(at, 0)).split("\n");
  opened += 1;
  const uri = pathToFileURL(path.join(folder, `${opened}.yaml`)).href;
  const faults = await server.open(uri, text);
  return { uri, faults, line: before.length - 1, character: before.at(-1).length };
}

async function completions(marked) {
  const { uri, line, character } = await edit(marked);
  return server.complete(uri, line, character);
}

async function names(marked) {
  return (await completions(marked)).map((item) => item.label);
}

async function hovered(marked) {
  const { uri, line, character } = await edit(marked);
  return server.hover(uri, line, character);
}

function definitions() {
  const folders = ["examples", "crates/formats/tests/cases/good", "crates/formats/tests/cases/seeds"];
  return folders.flatMap((name) =>
    fs
      .readdirSync(path.join(ROOT, name))
      .filter((file) => /\.(ya?ml|json)$/.test(file) && !file.includes(".test."))
      .map((file) => path.join(ROOT, name, file)),
  );
}

test("no valid definition of the repository is marked", async () => {
  const files = definitions();
  assert.ok(files.length > 30, `${files.length} files`);
  for (const file of files) {
    const { faults } = await edit(fs.readFileSync(file, "utf8").replaceAll("|", "\u2502"));
    const shown = faults.map((fault) => `${fault.range.start.line + 1}: ${fault.message}`);
    assert.deepEqual(shown, [], file);
  }
});

test("the fields of a workflow are completed", async () => {
  const found = await names("name: a\n|");
  for (const field of ["tasks", "flow", "nodes", "trigger", "concurrency", "input_schema", "max_duration"]) {
    assert.ok(found.includes(field), `${field} in ${found}`);
  }
});

test("the fields of a step are completed, with what they mean", async () => {
  const found = await completions("name: a\ntasks:\n  one:\n    |\n");
  const url = found.find((item) => item.label === "url");
  assert.ok(url, `${found.map((item) => item.label)}`);
  const text = typeof url.documentation === "string" ? url.documentation : url.documentation?.value;
  assert.match(text, /absolute http or https URL/);
  const after = await names("name: a\ntasks:\n  one:\n    url: https://a.example\n    |\n");
  for (const field of ["method", "headers", "body", "timeout", "retries", "needs", "if"]) {
    assert.ok(after.includes(field), `${field} in ${after}`);
  }
});

test("a flow step is offered its own transitions, a task is not", async () => {
  const flow = await names("name: a\nflow:\n  start:\n    tool: echo\n    |\n");
  assert.ok(flow.includes("branch") && flow.includes("on_error"), `${flow}`);
  const task = await names("name: a\ntasks:\n  one:\n    tool: echo\n    |\n");
  assert.ok(task.includes("needs") && !task.includes("branch"), `${task}`);
});

test("choices are completed", async () => {
  const methods = await names("name: a\ntasks:\n  one:\n    url: https://a.example\n    method: |\n");
  assert.ok(methods.includes("GET") && methods.includes("DELETE"), `${methods}`);
  const full = await names("name: a\nconcurrency:\n  limit: 1\n  when_full: |\ntasks:\n  one: {sleep: 1s}\n");
  assert.ok(full.includes("queue") && full.includes("cancel_oldest"), `${full}`);
});

test("a hover explains a field", async () => {
  assert.match(await hovered("name: a\nretenti|on: 90d\ntasks:\n  one: {sleep: 1s}\n"), /How long a finished run is kept/);
  assert.match(await hovered("name: a\ntasks:\n  one:\n    for_ea|ch: [1]\n    tasks: {b: {sleep: 1s}}\n"), /each item/);
  const approval = "name: a\ntasks:\n  one:\n    approval:\n      on_time|out: deny\n";
  assert.match(await hovered(approval), /without an answer/);
  const node = "name: a\nnodes:\n  - id: x\n    type: delay\n    data:\n      delaySec|onds: 5\n";
  assert.match(await hovered(node), /fixed delay/);
});

/** Each document has one fault, on a line that the editor must mark. */
const FAULTY = [
  ["an unknown field", "name: a\ntasks:\n  one:\n    url: https://a.example\n    methd: GET\n", 4],
  ["a wrong type", "name: a\nenabled: maybe\ntasks:\n  one: {sleep: 1s}\n", 1],
  ["a wrong choice", "name: a\ntasks:\n  one:\n    approval:\n      on_timeout: later\n", 4],
  ["a number out of range", "name: a\ntasks:\n  one:\n    tool: echo\n    retries: 1000\n", 4],
  ["a bad duration", "name: a\nmax_duration: soon\ntasks:\n  one: {sleep: 1s}\n", 1],
  ["two types", "name: a\ntasks:\n  one:\n    url: https://a.example\n    sleep: 5s\n", undefined],
  ["no type", "name: a\ntasks:\n  one:\n    needs: two\n  two: {sleep: 1s}\n", undefined],
  ["two dialects", "name: a\ntasks: {one: {sleep: 1s}}\nflow: {start: {tool: echo}}\n", undefined],
  ["a field of another kind", "name: a\ntasks:\n  one:\n    sleep: 5s\n    headers: {a: b}\n", undefined],
  ["two transitions", "name: a\nflow:\n  start:\n    tool: echo\n    next: b\n    done: true\n  b: {tool: echo}\n", undefined],
  ["a node without its url", "name: a\nnodes:\n  - {id: x, type: http, data: {method: GET}}\n", undefined],
  ["an unknown node type", "name: a\nnodes:\n  - {id: x, nodeType: htpp}\n", undefined],
];

for (const [what, text, line] of FAULTY) {
  test(`${what} is marked`, async () => {
    const { faults } = await edit(text);
    assert.ok(faults.length > 0, "no fault");
    if (line !== undefined) {
      const lines = faults.map((fault) => fault.range.start.line);
      assert.ok(lines.includes(line), `lines ${lines}: ${faults.map((fault) => fault.message)}`);
    }
  });
}
