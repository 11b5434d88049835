// The modules of the extension, with the real binary; and that what package.json promises is there.

"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { test } = require("node:test");
const { execFileSync } = require("node:child_process");
const { getLanguageService, TextDocument } = require("vscode-json-languageservice");
const { BUNDLED, isWorkflow, schema } = require("../src/association");
const { draw, page } = require("../src/preview");
const { BINARY } = require("./binary");
const manifest = require("../package.json");
const snippets = require("../snippets/stepwell.json");

const HERE = path.join(__dirname, "..");
const FLOW = "name: hello\ntasks:\n  greet: {tool: echo}\n  after <all>: {needs: greet, sleep: 1s}\n";
const GOOD = FLOW.replace("after <all>", "after");

test("what package.json contributes exists", () => {
  const { yamlValidation, jsonValidation, snippets: files } = manifest.contributes;
  for (const file of [...yamlValidation, ...jsonValidation].map((entry) => entry.url).concat(files[0].path, manifest.main)) {
    assert.ok(fs.existsSync(path.join(HERE, file)), file);
  }
  const source = fs.readFileSync(path.join(HERE, manifest.main), "utf8");
  for (const { command } of manifest.contributes.commands) {
    assert.ok(source.includes(`registerCommand("${command}"`), command);
  }
  for (const name of Object.keys(manifest.contributes.configuration.properties)) {
    assert.ok(source.includes(`setting("${name.replace("stepwell.", "")}")`), name);
  }
});

test("the schema that is packed is the one that the binary prints", async () => {
  const printed = JSON.parse(execFileSync(BINARY, ["schema"], { encoding: "utf8", maxBuffer: 16 << 20 }));
  const packed = JSON.parse(fs.readFileSync(BUNDLED, "utf8"));
  assert.deepEqual(packed, printed, "UPDATE=1 cargo test -p stepwell-formats packed");
  assert.deepEqual(JSON.parse(await schema(BINARY)), printed);
});

test("without a binary, the packed schema is used", async () => {
  const text = await schema(path.join(HERE, "no-such-binary"));
  assert.equal(text, fs.readFileSync(BUNDLED, "utf8"));
});

test("workflows are recognised by their name and by the setting", () => {
  for (const file of ["/a/b.stepwell.yaml", "/a/b.stepwell.yml", "c:\\flows\\b.stepwell.json"]) {
    assert.ok(isWorkflow(file), file);
  }
  for (const file of ["/a/stepwell.yaml", "/a/b.stepwell.yaml.bak", "/a/b.yaml"]) {
    assert.ok(!isWorkflow(file), file);
  }
  const patterns = ["workflows/*.yaml", "./flows/**/*.yml", "odd(name)+.yaml"];
  for (const file of ["/p/workflows/a.yaml", "/p/flows/a.yml", "/p/flows/x/y/a.yml", "/p/odd(name)+.yaml"]) {
    assert.ok(isWorkflow(file, patterns), file);
  }
  for (const file of ["/p/workflows/x/a.yaml", "/p/myworkflows/a.yaml", "/p/flows/a.yaml", "/p/oddname.yaml"]) {
    assert.ok(!isWorkflow(file, patterns), file);
  }
});

test("the preview draws what is in the editor", async () => {
  const drawing = await draw(BINARY, GOOD);
  assert.match(drawing.svg, /^<svg[\s\S]*greet[\s\S]*<\/svg>\s*$/);
  const html = page(drawing);
  const encoded = /src="data:image\/svg\+xml;base64,([^"]+)"/.exec(html)[1];
  assert.equal(Buffer.from(encoded, "base64").toString(), drawing.svg);
  assert.match(html, /default-src 'none'/);
  assert.ok(!html.includes("<script"));
});

test("the preview shows faults as text", async () => {
  const drawing = await draw(BINARY, FLOW);
  assert.equal(drawing.svg, undefined);
  assert.match(drawing.problem, /after <all>/);
  assert.match(page(drawing), /after &lt;all&gt;/);
});

test("a missing binary is explained", async () => {
  const drawing = await draw(path.join(HERE, "no-such-binary"), GOOD);
  assert.match(drawing.problem, /cannot be started.*stepwell\.path/);
});

/** A snippet as somebody leaves it who accepts every default. */
function accepted(body) {
  const values = new Map();
  const text = body.join("\n");
  const filled = text.replace(/\$\{(\d+)(?::((?:[^{}]|\{[^{}]*\})*)|\|([^|]*)\|)\}/g, (_, n, value, choices) => {
    values.set(n, value ?? choices.split(",")[0]);
    return values.get(n);
  });
  return filled.replace(/\$(\d+)/g, (_, n) => values.get(n) ?? "");
}

test("every snippet passes the check", () => {
  for (const [name, { prefix, body }] of Object.entries(snippets)) {
    const text = accepted(body);
    const step = prefix.startsWith("step-");
    const whole = step ? `name: a\ntasks:\n${text.replace(/^/gm, "  ")}\n` : text;
    const found = execFileSync(BINARY, ["check", "-"], { input: whole, encoding: "utf8" });
    assert.match(found, /: ok: /, `${name}:\n${whole}`);
  }
});

test("JSON workflows are completed and checked with the same schema", async () => {
  const service = getLanguageService({ schemaRequestService: () => fs.promises.readFile(BUNDLED, "utf8") });
  service.configure({ schemas: [{ uri: "file:///stepwell.json", fileMatch: ["*.stepwell.json"] }] });
  const check = async (value) => {
    const document = TextDocument.create("file:///a.stepwell.json", "json", 1, JSON.stringify(value, null, 1));
    return service.doValidation(document, service.parseJSONDocument(document));
  };
  assert.deepEqual(await check({ name: "a", tasks: { b: { url: "https://a.example" } } }), []);
  assert.notDeepEqual(await check({ name: "a", tasks: { b: { url: "https://a.example", retires: 3 } } }), []);
});
