// The page of a run as a workbench: panes side by side, the way taken, why it waits and how it goes on, its log.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ask, axe, fromDist, launch, PATIENCE, type Server, type Sins, serve, shot, signIn, watch } from "./browser";

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const sins: Sins = { all: [] };

async function open(width: number, height: number): Promise<BrowserContext> {
  const made = await browser.newContext({ viewport: { width, height } });
  made.setDefaultTimeout(PATIENCE);
  watch(made, server.url, sins);
  await fromDist(made);
  return made;
}

before(async () => {
  server = await serve();
  browser = await launch();
  context = await open(1920, 1080);
  page = await context.newPage();
  await signIn(page, server.url, server.link);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const ORDERS = `name: orders
tasks:
  load: {tool: echo, args: {list: [{sku: a}, {sku: b}]}}
  each:
    needs: load
    for_each: "{{input.ports}}"
    tasks: {price: {tool: echo, args: {port: "{{item}}"}}, check: {needs: price, url: "http://127.0.0.1:{{item}}/", retries: 0}}
  code: {needs: load, javascript: "console.log('hello'); console.warn('low stock'); return {ok: true}"}
  odd: {needs: load, if: "tasks.load.body.list.length == 99", tool: now}
  done: {needs: [each, code], tool: now}
`;

const SLOW = `name: slow
tasks:
  first: {tool: echo, args: {a: 1}}
  nap: {needs: first, sleep: 2h}
  after: {needs: nap, tool: now}
`;

async function started(name: string, source: string, input: unknown, wait = ""): Promise<string> {
  await ask(server, `/workflows/${name}`, { method: "PUT", body: source });
  const made = (await ask(server, `/workflows/${name}/trigger${wait}`, {
    method: "POST",
    body: JSON.stringify(input),
  })) as { data: { run_id: string } };
  return made.data.run_id;
}

let orders: string;

test("graph, timeline and inspector stay side by side when a step is opened", async () => {
  orders = await started("orders", ORDERS, { ports: [1] }, "?wait=60s");
  await page.goto(`${server.url}/runs/${orders}`);
  await page.getByRole("button", { name: /^load\s.*success/ }).click();
  const inspector = page.getByRole("region", { name: "Step load" });
  await inspector.getByLabel("Output", { exact: true }).getByText('"a"').waitFor();
  for (const pane of [".graph", '[aria-label="Timeline"]', '[aria-label="Step load"]']) {
    const box = await page.locator(pane).first().boundingBox();
    assert.ok(box && box.y >= 0 && box.x + box.width <= 1920 && box.y + box.height <= 1080, `${pane} is in view`);
  }
  await page.locator(".way-taken").first().waitFor();
  assert.ok((await page.locator(".way-not-taken").count()) > 0, "what was skipped is not drawn as taken");
  assert.deepEqual(await axe(page), []);
  await shot(page, "bench");
});

test("panes are resized by keyboard and remembered", async () => {
  const border = page.getByRole("separator", { name: "Resize the graph" });
  const before = Number(await border.getAttribute("aria-valuenow"));
  await border.focus();
  for (let n = 0; n < 4; n += 1) await page.keyboard.press("ArrowRight");
  const after = Number(await border.getAttribute("aria-valuenow"));
  assert.ok(after > before, `${before} to ${after}`);
  await page.reload();
  await border.waitFor();
  assert.equal(Number(await border.getAttribute("aria-valuenow")), after);
});

test("a value is a tree, and its path can be copied for a template", async () => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
  await page.getByRole("button", { name: "Copy the path tasks.load.body.list[1].sku" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "tasks.load.body.list[1].sku");
});

test("items of a for_each come with failed ones first, and lines of code are shown", async () => {
  await page.goto(`${server.url}/runs/${orders}?step=each`);
  const items = page.getByRole("region", { name: "Items" });
  await items.getByText("1 failed").waitFor();
  await items.getByRole("button", { name: "0", exact: true }).click();
  await page.getByRole("heading", { name: "each[0].check" }).waitFor();
  await page.getByRole("button", { name: /^code\s.*success/ }).click();
  await page.getByLabel("Lines", { exact: true }).getByText("low stock").waitFor();
});

test("the log is made of sentences, filtered, and leads to the step", async () => {
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByRole("cell", { name: "Created by admin" }).waitFor();
  await page.getByLabel("Only failures and waits").check();
  await page.getByRole("row", { name: /each\[0\]\.check.*Failed: / }).waitFor();
  assert.equal(await page.getByRole("cell", { name: "Created by admin" }).count(), 0);
  assert.deepEqual(await axe(page), []);
  await shot(page, "log-sentences");
  await page.getByRole("button", { name: "each[0].check" }).first().click();
  await page.getByRole("heading", { name: "each[0].check" }).waitFor();
});

test("a waiting run says why, and the button moves it on; who may not is not offered it", async () => {
  const run = await started("slow", SLOW, {});
  await ask(server, "/users", { method: "POST", body: JSON.stringify({ name: "reader", grants: ["workflow.read"] }) });
  const { data } = (await ask(server, "/sign-in-links?user=reader", { method: "POST" })) as { data: { url: string } };
  const reader = await open(1280, 860);
  const other = await reader.newPage();
  await signIn(other, server.url, data.url);
  await other.goto(`${server.url}/runs/${run}`);
  await other.getByLabel("Why it is not finished").getByText("sleeps").waitFor();
  await other.locator(".box-wait-until").getByText("in 2 h").waitFor();
  assert.equal(await other.getByRole("button", { name: "Wake it now" }).count(), 0);
  assert.equal(await other.getByRole("button", { name: "Cancel…" }).count(), 0);
  await shot(other, "bench-waiting");
  await reader.close();
  await page.goto(`${server.url}/runs/${run}`);
  await page.getByLabel("Why it is not finished").getByRole("button", { name: "Wake it now" }).click();
  await page.getByText("completed", { exact: true }).first().waitFor();
});

test("on a phone an opened step comes into view", async () => {
  const phone = await open(360, 740);
  const { data } = (await ask(server, "/sign-in-links", { method: "POST" })) as { data: { url: string } };
  const other = await phone.newPage();
  await signIn(other, server.url, data.url);
  await other.goto(`${server.url}/runs/${orders}`);
  await other.getByRole("button", { name: "Show as a list" }).click();
  await other.getByRole("button", { name: "code", exact: true }).click();
  const heading = other.getByRole("heading", { name: "code", exact: true });
  await heading.waitFor();
  await other.waitForFunction(() => {
    const top = document.querySelector('[aria-label="Step code"]')?.getBoundingClientRect().top ?? -1;
    return top >= -20 && top < window.innerHeight / 2;
  });
  const wide = await other.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  assert.deepEqual(await axe(other), []);
  await phone.close();
});

test("no page threw, contacted another host, or violated the policy", () => {
  assert.deepEqual(sins.all, []);
});
