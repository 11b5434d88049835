// The dashboard in a real browser against the real server, from the first sign-in to a retry.
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

test("a visitor without a session learns how to sign in", async () => {
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

test("the printed link signs in, and the home page creates and runs the sample", async () => {
  await signIn(page, server.url, server.link);
  await page.getByRole("heading", { name: "Welcome to Stepwell" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "first-run");
  await page.getByRole("button", { name: "Create and run the sample" }).click();
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
  await other.getByRole("article", { name: "Continue? So far I have: Hello, world!" }).waitFor();
  await other.getByRole("heading", { name: "If it is approved" }).waitFor();
  assert.deepEqual(await axe(other), []);
  await shot(other, "approvals-phone");
  await other.getByLabel("Comment (optional)").fill("fine");
  await other.getByRole("button", { name: "Approve" }).click();
  await other.getByRole("button", { name: "Yes, approve" }).click();
  await other.getByText("You approved this").waitFor();
  await other.getByRole("button", { name: "All questions" }).click();
  await other.getByText("Nothing is waiting for you").waitFor();
  await page.getByRole("button", { name: /^tell\s.*success/ }).waitFor();
  await page.getByText("completed", { exact: true }).first().waitFor();
  await second.close();
});

test("a failed run is retried, after a preview of what is kept", async () => {
  await ask(server, "/workflows/mixed", { method: "PUT", body: MIXED });
  await page.goto(`${server.url}/workflows/mixed`);
  await page.getByRole("button", { name: "Run…" }).click();
  await page.getByRole("button", { name: "Write JSON instead" }).click();
  await page.getByLabel("Input, as JSON").fill('{"url": "http://127.0.0.1:1/", "items": ["a", "b", "c"]}');
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("failed", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: /^say\s.*3 success/ }).waitFor();
  await page.getByRole("button", { name: "Unfold items" }).click();
  await page.getByRole("button", { name: "2: say" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByRole("cell", { name: "Created by admin" }).waitFor();
  await page.getByRole("button", { name: "Retry…" }).click();
  await page.getByRole("heading", { name: /^Kept \(1\)/ }).waitFor();
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await page.getByText(/retried 1 time/).waitFor();
});

test("a newer version is compared as text and as a graph, and the switch works", async () => {
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
  await ask(server, "/workflows/mixed/trigger", {
    method: "POST",
    body: '{"url": "http://127.0.0.1:1/", "items": []}',
  });
  await page.waitForFunction((n) => document.querySelectorAll('a[href^="/runs/run_"]').length > n, count);
  await page.getByLabel("Status").selectOption("completed");
  await page.waitForURL(/status=completed/);
  await page.waitForFunction(() => document.querySelectorAll('a[href^="/runs/run_"]').length === 1);
  assert.deepEqual(await axe(page), []);
});

const REFUND = `name: refund
input_schema: {type: object, properties: {cents: {type: integer}}}
tasks:
  gate:
    approval:
      message: "Pay {{input.cents}} cents back?"
      approvers: [admin, "role:approver"]
      approvals: 2
      escalate_to: carol
      escalate_after: 1h
      timeout: 4h
      form: {type: object, required: [reason], properties: {reason: {type: string, title: Reason}}}
  pay: {needs: gate, tool: echo, args: {cents: "{{input.cents}}", to: bank}}
`;

/** Records notifications in `told`, and makes the page believe it is in the background. */
const NOTED = `
  window.told = [];
  window.Notification = new Proxy(window.Notification, {
    construct: (real, [title, options]) => (window.told.push(title + ": " + options.body), new real(title, options)),
  });
  Object.defineProperty(document, "hidden", { get: () => true });
`;

/** Signs a new user in, in a separate browser, with a link created by an administrator. */
async function signedIn(user: string, roles: string[]): Promise<Page> {
  await ask(server, "/users", { method: "POST", body: JSON.stringify({ name: user, roles }) });
  const { data } = (await ask(server, `/sign-in-links?user=${user}`, { method: "POST" })) as { data: { url: string } };
  const other = await (await open()).newPage();
  await signIn(other, server.url, data.url);
  return other;
}

test("two people approve exactly what they are shown, and are notified in the browser", async () => {
  await ask(server, "/workflows/refund", { method: "PUT", body: REFUND });
  const bob = await signedIn("bob", ["approver"]);
  await bob.context().grantPermissions(["notifications"], { origin: server.url });
  // A headless browser shows no notifications, and its pages are never in the background.
  await bob.addInitScript({ content: NOTED });
  await bob.goto(`${server.url}/runs`);
  await bob.getByText("Live", { exact: true }).waitFor();
  await ask(server, "/workflows/refund/trigger", { method: "POST", body: '{"cents": 700}' });
  await bob.waitForFunction(() =>
    (window as unknown as { told: string[] }).told.some((one) => one.includes("Pay 700 cents back?")),
  );
  await bob.getByRole("link", { name: /^Approvals/ }).click();
  await bob.getByRole("button", { name: /^Pay 700 cents back/ }).click();
  const asked = bob.getByRole("article", { name: "Pay 700 cents back?" });
  await asked.getByText("Calls the tool echo").waitFor();
  await asked.locator(".values").getByText("700", { exact: true }).waitFor();
  await asked.getByText("0 of 2").waitFor();
  await asked.getByText("carol may also answer").waitFor();
  await asked.getByText("Digest of what is shown").click();
  await asked
    .getByText(/^[0-9a-f]{64}$/)
    .last()
    .waitFor();
  assert.deepEqual(await axe(bob), []);
  await asked.getByLabel("Reason").fill("it broke");
  await asked.getByRole("button", { name: "Approve" }).click();
  await asked.getByRole("button", { name: "Yes, approve" }).click();
  await bob.getByText("You approved this").waitFor();
  await bob.getByText("waits for more approvals").waitFor();
  await page.goto(`${server.url}/approvals`);
  await page.getByRole("button", { name: /^Pay 700 cents back/ }).click();
  await page.getByText("1 of 2: bob").waitFor();
  await shot(page, "approval-of-two");
  const mine = page.getByRole("article", { name: "Pay 700 cents back?" });
  await mine.getByLabel("Reason").fill("it did");
  await mine.getByText("This is the last of 2 approvals.").waitFor();
  await mine.getByRole("button", { name: "Approve" }).click();
  await mine.getByRole("button", { name: "Yes, approve" }).click();
  await page.getByText("You approved this").waitFor();
  await page.getByText("Recently answered").waitFor();
  await bob.context().close();
});

test("a child run links back to the step that started it", async () => {
  await ask(server, "/workflows/inner", { method: "PUT", body: "name: inner\ntasks: {now: {tool: now}}\n" });
  await ask(server, "/workflows/outer", { method: "PUT", body: "name: outer\ntasks: {call: {workflow: inner}}\n" });
  const { data } = (await ask(server, "/workflows/outer/trigger?wait=60s", { method: "POST", body: "{}" })) as {
    data: { run_id: string };
  };
  await page.goto(`${server.url}/runs/${data.run_id}?view=children`);
  await page.locator('a[href^="/runs/run_"]').first().click();
  await page.getByRole("heading", { name: "inner" }).waitFor();
  await page.getByRole("link", { name: "the step call of another run" }).click();
  await page.waitForURL(new RegExp(`/runs/${data.run_id}`));
  await page.getByRole("heading", { name: "outer" }).waitFor();
});

test("settings: a secret, a policy, a channel and notifications", async () => {
  await page.goto(`${server.url}/settings/secrets`);
  await page.getByRole("button", { name: "Set a secret" }).click();
  await page.getByLabel("Name", { exact: true }).fill("BANK_TOKEN");
  await page.getByLabel("Value").fill("never-shown-again");
  await page.getByLabel("Hosts it may be sent to").fill("bank.example.com");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: /BANK_TOKEN.*bank.example.com/ }).waitFor();
  assert.ok(!(await page.content()).includes("never-shown-again"));

  await page.goto(`${server.url}/settings/policies`);
  await page.getByRole("button", { name: "Set a policy" }).click();
  await page.getByLabel("Name", { exact: true }).fill("payments");
  await page.getByLabel("Calls", { exact: true }).fill("tool:pay*");
  await page.getByLabel("Who may approve").fill("role:approver");
  await page.getByLabel("Maximum calls").fill("10");
  await page.getByLabel("Reason").fill("money leaves");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: /payments.*tool:pay\*.*needs approval.*10 in 1m/ }).waitFor();

  await page.goto(`${server.url}/settings/channels`);
  await page.getByRole("button", { name: "Add a channel" }).click();
  await page.getByLabel("Name", { exact: true }).fill("phone");
  await page.getByRole("combobox", { name: "By" }).selectOption("ntfy");
  await page.getByLabel("Topic").fill("a-secret-topic");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("row", { name: /phone.*ntfy.sh/ }).waitFor();
  const failed = page.getByRole("checkbox", { name: "phone: a run failed" });
  // The box shows the saved state shortly after the click.
  for (const name of ["phone: a run failed", "Browser: a run failed"]) {
    await page.getByRole("checkbox", { name }).click();
    await page.getByRole("checkbox", { name, checked: false }).waitFor();
  }
  await page.reload();
  await failed.waitFor();
  assert.equal(await failed.isChecked(), false);
  const { data } = (await ask(server, "/preferences")) as { data: { browser: string[] } };
  assert.ok(!data.browser.includes("run_failed") && data.browser.includes("gate_opened"));

  await page.goto(`${server.url}/settings/audit`);
  await page.getByRole("button", { name: "Verify" }).click();
  await page.getByText(/all \d+ rows verified/).waitFor();
});

test("every page looks right, light and dark, wide and on a phone, and has no serious fault", async () => {
  const { data } = (await ask(server, "/runs?limit=20")) as { data: { id: string; workflow: string }[] };
  const of = (workflow: string) => data.find((run) => run.workflow === workflow)?.id ?? "";
  const [mixed, outer] = [of("mixed"), of("outer")];
  await ask(server, "/workflows/welcome/trigger", { method: "POST", body: "{}" });
  const settings = [
    "users",
    "roles",
    "keys",
    "secrets",
    "connections",
    "mcp-servers",
    "policies",
    "channels",
    "plan",
    "nodes",
    "audit",
    "you",
  ];
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
    ["data", `/runs/${mixed}?view=data`],
    ["children", `/runs/${outer}?view=children`],
    ["approvals", "/approvals"],
    ["editor", "/workflows/mixed/edit"],
    ["new", "/workflows/new"],
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

test("no page threw, contacted another host, or violated the policy", () => {
  assert.deepEqual(sins.all, []);
});
