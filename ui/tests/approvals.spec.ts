// The approver's moment: a card that says what an answer does, two deliberate steps, and an acknowledgement that stays.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ask, axe, fromDist, launch, PATIENCE, type Server, type Sins, serve, shot, signIn, watch } from "./browser";

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const sins: Sins = { all: [] };

before(async () => {
  server = await serve();
  browser = await launch();
  context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "Asia/Tokyo" });
  context.setDefaultTimeout(PATIENCE);
  watch(context, server.url, sins);
  await fromDist(context);
  page = await context.newPage();
  await signIn(page, server.url, server.link);
  await ask(server, "/workflows/deploy", { method: "PUT", body: DEPLOY });
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const DEPLOY = `name: deploy
input_schema: {type: object, properties: {what: {type: string}}}
tasks:
  build: {tool: echo, args: {image: "{{input.what}}"}}
  ask:
    needs: build
    approval: {message: "Deploy {{input.what}}?", timeout: 2h, on_timeout: approve}
  roll: {needs: ask, tool: echo, args: {image: "{{tasks.build.body.image}}", replicas: 3, note: "{{tasks.ask.body.by}}"}}
  undo: {needs: ask, if: "tasks.ask.status == 'denied'", tool: echo, args: {note: not deployed}}
`;

async function started(what: string): Promise<string> {
  const made = (await ask(server, "/workflows/deploy/trigger", {
    method: "POST",
    body: JSON.stringify({ what }),
  })) as { data: { run_id: string } };
  for (;;) {
    const { data } = (await ask(server, "/approvals")) as { data: { run_id: string }[] };
    if (data.some((one) => one.run_id === made.data.run_id)) return made.data.run_id;
  }
}

const state = async (run: string) => ((await ask(server, `/runs/${run}`)) as { data: { status: string } }).data.status;

test("a card says what each answer does, and what silence does in red", async () => {
  await started("shop:1");
  await page.goto(`${server.url}/approvals`);
  const card = page.getByRole("article", { name: "Deploy shop:1?" });
  const yes = card.locator(".outcome-good");
  await yes.getByText("One call may follow that is not covered").waitFor();
  await yes.getByText("Calls the tool echo").waitFor();
  await yes.locator(".values").getByText("shop:1", { exact: true }).waitFor();
  assert.match((await yes.locator('[data-unknown="true"]').textContent()) ?? "", /note.*not known yet/);
  await card.locator(".outcome-bad .values").getByText("not deployed", { exact: true }).waitFor();
  await card.locator(".silence-alarm").getByText("Without an answer it counts as approved").waitFor();
  await card.getByText("Who asks").waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "approval-card");
});

test("two clicks in one place decide nothing, and a shown answer is final and stays", async () => {
  const [first, second] = [await started("shop:2"), await started("shop:3")];
  await page.goto(`${server.url}/approvals`);
  await page.getByLabel("Filter questions").fill("shop:2");
  await page.getByRole("button", { name: /Deploy shop:2/ }).click();
  const card = page.getByRole("article", { name: "Deploy shop:2?" });
  await card.getByRole("button", { name: "Approve" }).dblclick();
  await page.waitForTimeout(700);
  assert.equal(await state(first), "paused");
  // The second click of the two has gone back, or the confirmation is open: never more.
  if (await card.getByRole("button", { name: "Approve", exact: true }).isVisible())
    await card.getByRole("button", { name: "Approve", exact: true }).click();
  await card.getByRole("button", { name: "Go back" }).click();
  await card.getByRole("button", { name: "Deny" }).click();
  await card.getByLabel("Confirm your answer").getByText("final").waitFor();
  await card.getByRole("button", { name: "Yes, deny" }).click();
  await page.getByText("You denied this").waitFor();
  assert.equal(await state(first), "completed", "the server has the answer when the page shows it");
  await page.reload();
  await page.getByText("You denied this").waitFor();
  await page.getByText("denied by admin").waitFor();
  assert.deepEqual(await axe(page), []);
  assert.equal(await state(second), "paused");
});

test("a question that someone else answers stays on the screen, and says so", async () => {
  const run = await started("shop:4");
  await page.goto(`${server.url}/approvals`);
  await page.getByRole("button", { name: /Deploy shop:4/ }).click();
  const card = page.getByRole("article", { name: "Deploy shop:4?" });
  await card.getByRole("button", { name: "Approve" }).waitFor();
  await ask(server, `/runs/${run}/steps/ask/deny`, { method: "POST", body: "{}" });
  await card.getByText("This is no longer asked.").waitFor();
  await card.getByText("denied by admin").waitFor();
});

test("the badge counts what this user can still answer", async () => {
  const { data } = (await ask(server, "/approvals")) as { data: { mine: boolean }[] };
  const open = data.filter((one) => one.mine).length;
  await page.getByRole("img", { name: `${open} wait for you` }).waitFor();
});

test("no page threw, contacted another host, or violated the policy", () => {
  assert.deepEqual(sins.all, []);
});
