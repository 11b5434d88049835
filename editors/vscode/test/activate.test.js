// The extension as an editor loads it: activated with a stand-in for VS Code's API, and the real binary.

"use strict";

const assert = require("node:assert/strict");
const Module = require("node:module");
const { test } = require("node:test");
const { BINARY } = require("./binary");

/** As much of the API as the extension uses, and what it did with it. */
function editor({ files = [], text = "" } = {}) {
  const commands = new Map();
  const contributors = new Map();
  const panels = [];
  const listeners = new Set();
  const document = { uri: { path: "/flows/hello.stepwell.yaml" }, getText: () => text };
  const yaml = {
    activate: async () => ({ registerContributor: (name, schema, content) => contributors.set(name, { schema, content }) }),
  };
  const settings = { path: BINARY, files };
  const api = {
    workspace: {
      getConfiguration: () => ({ get: (name) => settings[name] }),
      onDidChangeTextDocument: (listener) => {
        listeners.add(listener);
        return { dispose: () => listeners.delete(listener) };
      },
    },
    commands: { registerCommand: (name, run) => commands.set(name, run) },
    extensions: { getExtension: (name) => (name === "redhat.vscode-yaml" ? yaml : undefined) },
    Uri: { parse: (uri) => ({ path: new URL(uri).pathname }) },
    ViewColumn: { Beside: -2 },
    window: {
      activeTextEditor: { document },
      createWebviewPanel: (kind, title) => {
        const drawn = [];
        const waiting = [];
        const panel = {
          kind,
          title,
          drawn,
          /** The next page that is shown. */
          next: () => new Promise((resolve) => waiting.push(resolve)),
          webview: {
            set html(page) {
              drawn.push(page);
              waiting.splice(0).forEach((resolve) => resolve(page));
            },
          },
          onDidDispose: (listener) => (panel.dispose = listener),
        };
        panels.push(panel);
        return panel;
      },
    },
  };
  const type = (typed) => {
    text = typed;
    listeners.forEach((listener) => listener({ document }));
  };
  return { api, commands, contributors, panels, listeners, type };
}

/** The extension, loaded with this editor. */
async function activated(it) {
  const load = Module._load;
  Module._load = (name, ...rest) => (name === "vscode" ? it.api : load(name, ...rest));
  try {
    const main = require.resolve("../src/extension");
    delete require.cache[main];
    await require(main).activate({ subscriptions: [] });
  } finally {
    Module._load = load;
  }
  return it;
}

const drawing = (page) => Buffer.from(/base64,([^"]+)"/.exec(page)?.[1] ?? "", "base64").toString();

test("workflow files are given the schema of the installed binary", async () => {
  const { contributors } = await activated(editor({ files: ["odd/*.yaml"] }));
  const { schema, content } = contributors.get("stepwell");
  assert.ok(schema("file:///a/b.stepwell.yaml"));
  assert.equal(schema("file:///a/odd/b.yaml"), schema("file:///a/b.stepwell.yaml"));
  assert.equal(schema("file:///a/b.yaml"), undefined);
  assert.equal(JSON.parse(await content()).title, "Stepwell workflow");
});

test("the preview follows what is typed, until it is closed", async () => {
  const it = await activated(editor({ text: "name: hello\ntasks: {greet: {tool: echo}}\n" }));
  await it.commands.get("stepwell.preview")();
  const [panel] = it.panels;
  assert.equal(panel.title, "Graph of hello.stepwell.yaml");
  assert.match(drawing(panel.drawn[0]), /greet/);
  const next = panel.next();
  it.type("name: hello\ntasks: {greet: {tool: echo}, part: {needs: greet, sleep: 1s}}\n");
  assert.match(drawing(await next), /part/);
  const faulty = panel.next();
  it.type("name: hello\ntasks: {greet: {tool: echo, needs: part}}\n");
  assert.match(await faulty, /<pre>[\s\S]*part/);
  panel.dispose();
  assert.equal(it.listeners.size, 0);
});

test("without an open document, the preview does nothing", async () => {
  const it = await activated(editor());
  it.api.window.activeTextEditor = undefined;
  await it.commands.get("stepwell.preview")();
  assert.equal(it.panels.length, 0);
});
