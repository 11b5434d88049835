// The dashboard in a real browser against the real server, from the first sign-in to a retry.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ask, axe, fromDist, launch, PATIENCE, serve, type Server, shot, signIn, type Sins, watch } from "./browser";

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const sins: Sins = { all: [] };

async function open(): Promise<BrowserContext> {
  const made = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  made.setDefaultTimeout(PATIENCE);
  watch(made, server.url, sins);
  await fromDist(made);
  return made;
}

before(async () => {
  server = await serve();
  browser = await launch();
  context = await open();
  page = await context.newPage();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const MIXED = `name: mixed
description: Items, a failure and a good end
input_schema: {type: object, properties: {url: {type: string}}}
tasks:
  items:
    for_each: "{{input.items}}"
    max_parallel: 4
    tasks: {say: {tool: echo, args: {text: "{{item}}"}}}
  call: {needs: items, url: "{{input.url}}", retries: 0}
  done: {needs: call, tool: now}
`;

test("whoever is not signed in is told how", async () => {
  const stranger = await browser.newContext();
  stranger.setDefaultTimeout(PATIENCE);
  await fromDist(stranger);
  const other = await stranger.newPage();
  await other.goto(`${server.url}/runs`);
  await other.getByRole("heading", { name: "Sign in to Stepwell" }).waitFor();
  await other.getByText("stepwell login").waitFor();
  await shot(other, "sign-in");
  await stranger.close();
});

test("the printed link signs in, and the first page makes and runs the sample", async () => {
  await signIn(page, server.url, server.link);
  await page.getByRole("heading", { name: "Welcome to Stepwell" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "first-run");
  await page.getByRole("button", { name: "Make and run the sample" }).click();
  await page.getByRole("heading", { name: "welcome" }).waitFor();
  // Watched, not reloaded.
  await page.getByRole("button", { name: /^ask\s.*waiting/ }).waitFor();
  await page.getByRole("button", { name: /^greet\s.*success/ }).click();
  await page.getByLabel("Output", { exact: true }).getByText("Hello, world!").waitFor();
  assert.deepEqual(await axe(page), []);
});

test("an approval given in another browser moves the run on", async () => {
  const { data } = (await ask(server, "/sign-in-links", { method: "POST" })) as { data: { url: string } };
  const second = await open();
  const other = await second.newPage();
  await other.setViewportSize({ width: 390, height: 844 });
  await signIn(other, server.url, data.url);
  await other.goto(`${server.url}/approvals`);
  await other.getByText("Shall I go on? So far I have: Hello, world!").first().waitFor();
  await other.getByText("What will happen").waitFor();
  assert.deepEqual(await axe(other), []);
  await shot(other, "approvals-phone");
  await other.getByLabel("Comment (optional)").fill("fine");
  await other.getByRole("button", { name: "Approve" }).click();
  await other.getByText("Nothing waits for you").waitFor();
  await page.getByRole("button", { name: /^tell\s.*success/ }).waitFor();
  await page.getByText("completed", { exact: true }).first().waitFor();
  await second.close();
});

test("a failed run is retried, with what stands shown before", async () => {
  await ask(server, "/workflows/mixed", { method: "PUT", body: MIXED });
  await page.goto(`${server.url}/workflows/mixed`);
  await page.getByRole("button", { name: "Run…" }).click();
  await page.getByRole("button", { name: "Write JSON instead" }).click();
  await page.getByLabel("Input, as JSON").fill('{"url": "http://127.0.0.1:1/", "items": ["a", "b", "c"]}');
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("failed", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: /^say\s.*3 success/ }).waitFor();
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.getByRole("button", { name: "Unfold items" }).click();
  await page.getByRole("button", { name: "2: say" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByRole("cell", { name: "created" }).first().waitFor();
  await page.getByRole("button", { name: "Retry…" }).click();
  await page.getByRole("heading", { name: /^Stands \(4\)/ }).waitFor();
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await page.getByText(/retried 1 time/).waitFor();
});

test("a newer version is compared in words and in the picture, and a switch switches", async () => {
  await ask(server, "/workflows/mixed", { method: "PUT", body: MIXED.replace("done:", "finish:") });
  await page.goto(`${server.url}/workflows/mixed?view=versions`);
  await page.getByText("1 lines in, 1 out").waitFor();
  await page.getByRole("button", { name: "Show as a list" }).click();
  await page.getByRole("row", { name: /finish.*added/ }).waitFor();
  await page.getByRole("row", { name: /done.*removed/ }).waitFor();
  await page.getByRole("switch", { name: "Enabled" }).click();
  await page.getByText("disabled", { exact: true }).waitFor();
  await page.getByRole("switch", { name: "Enabled" }).click();
});

test("the list of runs is live and keeps its filters in the address", async () => {
  await page.goto(`${server.url}/runs`);
  const links = page.locator('a[href^="/runs/run_"]');
  await links.first().waitFor();
  const count = await links.count();
  await ask(server, "/workflows/mixed/trigger", { method: "POST", body: '{"url": "http://127.0.0.1:1/", "items": []}' });
  await page.waitForFunction((n) => document.querySelectorAll('a[href^="/runs/run_"]').length > n, count);
  await page.getByLabel("Status").selectOption("completed");
  await page.waitForURL(/status=completed/);
  await page.waitForFunction(() => document.querySelectorAll('a[href^="/runs/run_"]').length === 1);
  assert.deepEqual(await axe(page), []);
});

test("every page looks right, light and dark, wide and on a phone, and has no serious fault", async () => {
  const { data } = (await ask(server, "/runs?limit=20")) as { data: { id: string; workflow: string }[] };
  const mixed = data.find((run) => run.workflow === "mixed")?.id ?? "";
  await ask(server, "/workflows/welcome/trigger", { method: "POST", body: "{}" });
  const settings = ["users", "roles", "keys", "secrets", "connections", "policies", "channels", "plan", "nodes", "audit", "you"];
  const pages: [string, string][] = [
    ["home", "/"],
    ["workflows", "/workflows"],
    ["workflow", "/workflows/mixed"],
    ["triggers", "/workflows/mixed?view=triggers"],
    ["versions", "/workflows/mixed?view=versions"],
    ["runs", "/runs"],
    ["run", `/runs/${mixed}?step=call`],
    ["timeline", `/runs/${mixed}?view=timeline`],
    ["log", `/runs/${mixed}?view=events`],
    ["approvals", "/approvals"],
    ...settings.map((part): [string, string] => [`settings-${part}`, `/settings/${part}`]),
  ];
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [size, viewport] of [
      ["wide", { width: 1280, height: 860 }],
      ["phone", { width: 390, height: 844 }],
    ] as const) {
      await page.setViewportSize(viewport);
      for (const [name, path] of pages) {
        await page.goto(server.url + path);
        await page.getByRole("heading", { level: 1 }).first().waitFor();
        await page.waitForFunction(() => !document.body.innerText.includes("Loading…"));
        await page.waitForTimeout(400);
        await shot(page, `${name}-${theme}-${size}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(wide <= 0, `${name} on a ${size} screen is ${wide} pixels too wide`);
        if (size === "wide" || theme === "light") assert.deepEqual(await axe(page), [], `${name} ${theme} ${size}`);
      }
    }
  }
});

test("no page threw, asked another host, or broke the policy", () => {
  assert.deepEqual(sins.all, []);
});
