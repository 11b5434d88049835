// Large things stay usable: five hundred steps, a thousand items, a hundred thousand runs. Prints how long input waits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { ask, fromDist, launch, PATIENCE, type Server, serve, shot, signIn } from "./browser";

/** Far above what users notice: the tests also run on machines with other load. */
const LONGEST = 3_000;
const RUNS = 100_000;

let server: Server;
let browser: Browser;
let page: Page;

before(async () => {
  server = await serve();
  browser = await launch();
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  context.setDefaultTimeout(PATIENCE);
  await fromDist(context);
  page = await context.newPage();
  await signIn(page, server.url, server.link);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** The longest time from an input to the next frame during an action, as measured by the browser. */
async function delayOf(act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const held = window as unknown as { longest: number; watcher?: PerformanceObserver };
    held.longest = 0;
    held.watcher?.disconnect();
    held.watcher = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) held.longest = Math.max(held.longest, entry.duration);
    });
    held.watcher.observe({ type: "event", durationThreshold: 16 } as PerformanceObserverInit);
  });
  await act();
  await page.waitForTimeout(300);
  return page.evaluate(() => (window as unknown as { longest: number }).longest);
}

async function started(name: string, source: string, input: unknown): Promise<string> {
  await ask(server, `/workflows/${name}`, { method: "PUT", body: source });
  const made = (await ask(server, `/workflows/${name}/trigger?wait=120s`, {
    method: "POST",
    body: JSON.stringify(input),
  })) as { data: { run_id: string } };
  return made.data.run_id;
}

function report(what: string, ms: number): void {
  console.log(`${what}: input waits at most ${ms.toFixed(0)} ms`);
  assert.ok(ms < LONGEST, `${what}: ${ms} ms`);
}

test("a graph of five hundred steps", { timeout: 5 * PATIENCE }, async () => {
  const steps = Array.from(
    { length: 500 },
    (_, n) => `  s${n}: {${n > 0 ? `needs: s${Math.floor((n - 1) / 3)}, ` : ""}tool: echo, args: {n: ${n}}}`,
  );
  const run = await started("wide", `name: wide\ntasks:\n${steps.join("\n")}\n`, {});
  await page.goto(`${server.url}/runs/${run}`);
  await page.locator(".react-flow__node").first().waitFor();
  const delay = await delayOf(async () => {
    const box = await page.locator(".graph").boundingBox();
    if (!box) throw new Error("no graph");
    await page.mouse.move(box.x + 300, box.y + 30);
    await page.mouse.down();
    for (let n = 1; n <= 20; n += 1) await page.mouse.move(box.x + 300 - n * 8, box.y + 30 + n * 5);
    await page.mouse.up();
    await page.getByRole("button", { name: /zoom in/i }).click();
    await page.getByRole("button", { name: /zoom in/i }).click();
  });
  await shot(page, "large-graph");
  report("500 steps", delay);
});

test("a run with a thousand items", { timeout: 5 * PATIENCE }, async () => {
  const source = `name: items\ntasks:\n  each:\n    for_each: "{{input.items}}"\n    max_parallel: 50\n    tasks: {say: {tool: echo, args: {text: "{{item}}"}}}\n`;
  const run = await started("items", source, { items: Array.from({ length: 1000 }, (_, n) => n) });
  await page.goto(`${server.url}/runs/${run}`);
  await page.getByRole("button", { name: /^say\s.*1000 success/ }).click();
  await page.getByText("1000 times: 1000 success").waitFor();
  const delay = await delayOf(async () => {
    await page.getByRole("button", { name: "Unfold each" }).click();
    await page.getByRole("button", { name: "950 more" }).click();
    await page.getByRole("region", { name: "Steps by time" }).hover();
    for (let n = 0; n < 20; n += 1) await page.mouse.wheel(0, 400);
  });
  report("1,000 items", delay);
});

test("a list of a hundred thousand runs", { timeout: 10 * PATIENCE }, async () => {
  // Running them would take the server a while, and only the list is under test.
  await page.route(/\/api\/v1\/runs\?/, async (route) => {
    const asked = new URL(route.request().url()).searchParams;
    const [from, limit] = [Number(asked.get("cursor") ?? "0"), Number(asked.get("limit") ?? "50")];
    const one = (n: number) => ({
      id: `run_${String(RUNS - n).padStart(12, "0")}`,
      workflow: "many",
      workflow_id: "wf_1",
      workflow_version: 1,
      status: n % 9 ? "completed" : "failed",
      created_by: "admin",
      created_at: new Date(Date.now() - n * 1000).toISOString(),
      started_at: null,
      finished_at: null,
      labels: {},
      child: false,
    });
    const count = Math.min(limit, RUNS - from);
    await route.fulfill({
      json: {
        data: Array.from({ length: count }, (_, n) => one(from + n)),
        next: from + count < RUNS ? String(from + count) : null,
      },
    });
  });
  await page.goto(`${server.url}/runs`);
  const box = page.getByRole("table", { name: "Runs" });
  await box.waitFor();
  while (!(await page.getByText(`${RUNS.toLocaleString()} runs`).isVisible())) {
    await box.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.waitForTimeout(30);
  }
  const delay = await delayOf(async () => {
    await box.hover();
    for (let n = 0; n < 30; n += 1) await page.mouse.wheel(0, -3_000);
    await page.getByLabel("Search").fill("abc");
    await page.getByLabel("Search").fill("");
  });
  assert.ok((await page.locator('a[href^="/runs/run_"]').count()) < 100, "only rows in view are in the page");
  report("100,000 runs", delay);
});
