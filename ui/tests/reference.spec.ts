// The reference of the API in a real browser: nothing from elsewhere, nothing that the policy refuses, and a call that is
// tried with a key.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { fromDist, launch, PATIENCE, type Server, type Sins, serve, shot, watch } from "./browser";

let server: Server;
let browser: Browser;
let page: Page;
const sins: Sins = { all: [] };

before(async () => {
  server = await serve();
  browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  context.setDefaultTimeout(PATIENCE);
  watch(context, server.url, sins);
  await fromDist(context);
  page = await context.newPage();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

test("an operation has its parameters, examples in three languages and its problems", async () => {
  await page.goto(`${server.url}/docs#post-/api/v1/workflows/-id-/trigger`);
  await page.getByText("Start a run; the body is its input").first().waitFor();
  for (const name of ["curl", "Python", "TypeScript"]) await page.getByRole("button", { name, exact: true }).waitFor();
  await page.getByText("Idempotency-Key").first().waitFor();
  await page.getByText("concurrency-limit").first().waitFor({ state: "attached" });
  await shot(page, "reference");
});

test("a call is tried with the caller's key", async () => {
  await page.goto(`${server.url}/docs#auth`);
  const key = page.getByPlaceholder(/api-token|token/i).first();
  await key.fill(server.key);
  await page.getByRole("button", { name: /set/i }).first().click();
  await page.goto(`${server.url}/docs#get-/api/v1/me`);
  await page.getByRole("button", { name: /^try$/i }).click();
  await page
    .getByText(/"user": ?"admin"|"admin"/)
    .first()
    .waitFor();
});

test("nothing came from elsewhere and the policy refused nothing", () => {
  assert.deepEqual(sins.all, []);
});
