// Around the pages: the palette and the keys, what a user is offered, a server that goes away, and the list of runs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ask, axe, fromDist, launch, PATIENCE, type Server, type Sins, serve, shot, signIn, watch } from "./browser";

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const sins: Sins = { all: [] };

async function open(): Promise<BrowserContext> {
  const made = await browser.newContext({ viewport: { width: 1440, height: 900 } });
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
  await signIn(page, server.url, server.link);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const SHIP = `name: ship
tasks: {say: {tool: echo, args: {text: hi}}, call: {needs: say, url: "http://127.0.0.1:1/", retries: 0}}
`;

async function shipped(): Promise<string> {
  const made = (await ask(server, "/workflows/ship/trigger?wait=60s", { method: "POST", body: "{}" })) as {
    data: { run_id: string };
  };
  return made.data.run_id;
}

test("Ctrl+K finds workflows, settings and runs, and goes there", async () => {
  await ask(server, "/workflows/ship", { method: "PUT", body: SHIP });
  const run = await shipped();
  await page.goto(`${server.url}/`);
  await page.getByRole("heading", { name: "Home" }).waitFor();
  const find = page.getByRole("combobox", { name: "Find a page, a workflow or a run" });
  await page.keyboard.press("Control+k");
  await find.waitFor();
  await page.keyboard.type("ship");
  await page.getByRole("option", { name: /Workflow ship/ }).waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "palette");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/workflows\/ship$/);
  await page.keyboard.press("Control+k");
  await find.fill(run.slice(-10));
  await page.getByRole("option", { name: new RegExp(run) }).click();
  await page.waitForURL(new RegExp(run));
  await page.keyboard.press("Control+k");
  await find.fill("invite");
  await page.keyboard.press("Enter");
  await page.waitForURL(/settings\/users/);
});

test("single keys go places and list themselves, and can be switched off", async () => {
  await page.getByRole("heading", { name: "Settings" }).click();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.waitForURL(/\/runs$/);
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.getByText("go to Workflows").waitFor();
  assert.deepEqual(await axe(page), []);
  await keys.getByLabel(/Keys without Ctrl work/).uncheck();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "detached" });
  await page.keyboard.press("?");
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Find" }).waitFor();
  assert.equal(await keys.count(), 0);
  await page.keyboard.press("Escape");
});

test("the list of runs says why one failed, and keeps filters under a name", async () => {
  await shipped();
  await page.goto(`${server.url}/runs`);
  await page
    .getByRole("button", { name: /^Why\?/ })
    .first()
    .click();
  await page.getByText("connection failed").first().waitFor();
  await page.getByRole("button", { name: "24 h" }).click();
  await page.waitForURL(/since=/);
  await page.getByLabel("Started by").fill("admin");
  await page.waitForURL(/created_by=admin/);
  await page.getByRole("button", { name: "Save this filter…" }).click();
  await page.getByLabel("Name of the filter").fill("mine today");
  await page.keyboard.press("Enter");
  await page.getByLabel("Sort").selectOption("longest");
  assert.deepEqual(await axe(page), []);
  await shot(page, "runs-filtered");
  await page.goto(`${server.url}/runs`);
  await page.getByRole("button", { name: "mine today", exact: true }).click();
  await page.waitForURL(/created_by=admin/);
});

test("the list of runs fits a phone, with few filters at first", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(`${server.url}/runs`);
  await page.locator('a[href^="/runs/run_"]').first().waitFor();
  assert.equal(await page.getByLabel("Started by").isVisible(), false);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "More filters" }).click();
  await page.getByLabel("Started by").waitFor();
  await shot(page, "runs-phone");
  await page.setViewportSize({ width: 1440, height: 900 });
});

test("who may only read is offered nothing else", async () => {
  await ask(server, "/users", { method: "POST", body: JSON.stringify({ name: "reader", grants: ["workflow.read"] }) });
  const { data } = (await ask(server, "/sign-in-links?user=reader", { method: "POST" })) as { data: { url: string } };
  const reader = await open();
  const other = await reader.newPage();
  await signIn(other, server.url, data.url);
  await other.goto(`${server.url}/workflows/ship`);
  await other.getByRole("heading", { name: "ship" }).waitFor();
  await other.getByRole("region", { name: "Graph of ship" }).waitFor();
  for (const name of ["Run…", "Edit", "Delete…"]) assert.equal(await other.getByText(name, { exact: true }).count(), 0);
  await other.goto(`${server.url}/workflows`);
  await other.getByRole("link", { name: "ship" }).first().waitFor();
  assert.equal(await other.getByText("New workflow").count(), 0);
  await other.getByRole("link", { name: "Settings" }).click();
  await other.getByRole("navigation", { name: "Settings" }).getByText("Keys").waitFor();
  assert.equal(await other.getByRole("navigation", { name: "Settings" }).getByText("Users").count(), 0);
  await other.goto(`${server.url}/settings/users`);
  await other.getByText("This setting is for administrators.").waitFor();
  assert.deepEqual(await axe(other), []);
  await reader.close();
});

test("a server that goes away is announced, and the page continues by itself", async () => {
  await page.goto(`${server.url}/runs`);
  await page.getByText("Live", { exact: true }).waitFor();
  const seen = sins.all.length;
  await server.halt();
  await page.getByText("The server does not respond.").waitFor();
  await shot(page, "server-away");
  await server.again();
  await page.getByText("The server does not respond.").waitFor({ state: "detached" });
  await page.getByText("Live", { exact: true }).waitFor();
  // The browser itself logs every request that failed.
  const logged = sins.all
    .splice(seen)
    .filter(
      (one) =>
        !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 503/.test(
          one,
        ),
    );
  assert.deepEqual(logged, []);
});

test("no page threw, contacted another host, or violated the policy", () => {
  assert.deepEqual(sins.all, []);
});
