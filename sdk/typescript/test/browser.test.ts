// The client in Chromium, on a page of another origin than the server's.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ThrowAwayServer } from "../src/testing.js";
import { BINARY } from "./harness.js";

const BUILT = fileURLToPath(new URL("../src/", import.meta.url));
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** What a page that runs this module sends back. */
async function inChromium(script: (origin: string) => Promise<string>): Promise<string> {
  const chromium = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));
  assert.ok(chromium, "there is no Chromium: install Debian's `chromium`, or name one with CHROMIUM");
  let resolve = (_: string): void => {};
  let reject = (_: Error): void => {};
  const promise = new Promise<string>((done, failed) => ([resolve, reject] = [done, failed]));
  let page = "";
  const pages = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://page").pathname;
    if (request.method === "POST") {
      let said = "";
      for await (const part of request) {
        said += String(part);
      }
      response.end();
      resolve(said);
    } else if (path === "/") {
      response.setHeader("content-type", "text/html").end(page);
    } else {
      const file = await readFile(join(BUILT, path)).catch(() => undefined);
      response.writeHead(file === undefined ? 404 : 200, { "content-type": "text/javascript" }).end(file);
    }
  });
  await once(pages.listen(0, "127.0.0.1"), "listening");
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const home = await mkdtemp(join(tmpdir(), "stepwell-chromium-"));
  try {
    const code = await script(origin);
    page = `<!doctype html><title>stepwell</title><script type="module">
      const answer = (body) => fetch("/said", { method: "POST", body });
      try {
        ${code}
      } catch (error) {
        await answer("failed: " + error);
      }
    </script>`;
    const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const flags = ["--headless=new", "--disable-gpu", "--no-first-run", `--user-data-dir=${home}`, ...root];
    const browser = spawn(chromium, [...flags, origin], { stdio: "ignore" });
    browser.once("exit", (code) => reject(new Error(`Chromium ended: ${code}`)));
    try {
      return await promise;
    } finally {
      browser.removeAllListeners("exit");
      const ended = once(browser, "exit");
      browser.kill();
      await ended;
    }
  } finally {
    pages.close();
    pages.closeAllConnections();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

test("a page of another origin defines, runs, watches and reads problems", async () => {
  let server: ThrowAwayServer | undefined;
  try {
    const said = await inChromium(async (origin) => {
      server = await ThrowAwayServer.start({ binary: BINARY, config: JSON.stringify({ cors: { origins: [origin] } }) });
      return `
        const { Client, Problem } = await import("/index.js");
        const { Workflow } = await import("/build.js");
        const client = new Client({ url: ${JSON.stringify(server.url)}, key: ${JSON.stringify(await server.key())} });
        const hello = new Workflow("hello");
        const say = hello.tool("say", "echo", { text: \`Hello, \${hello.input.name}!\` });
        hello.output = say.body.text;
        await client.define(hello.toJSON());
        const run = await client.run("hello", { name: "Ann" }, { timeout: 60_000 });
        const types = [];
        for await (const event of client.watch(run.run_id)) types.push(event.type);
        const missing = await client.workflow("none").catch((error) => error instanceof Problem && error.code);
        await answer(JSON.stringify({ status: run.status, output: run.output, last: types.at(-1), missing }));`;
    });
    assert.ok(said.startsWith("{"), said);
    const expected = { status: "completed", output: "Hello, Ann!", last: "end", missing: "not-found" };
    assert.deepEqual(JSON.parse(said), expected);
  } finally {
    await server?.stop();
  }
});
