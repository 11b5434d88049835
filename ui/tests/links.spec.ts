// The page behind an approval link: the card of the inbox without a key, on a small phone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { ask, axe, launch, PATIENCE, type Server, type Sins, serve, shot, watch } from "./browser";

let server: Server;
let browser: Browser;
const sins: Sins = { all: [] };

before(async () => {
  server = await serve();
  browser = await launch();
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

test("the page behind a link is the same card, on a small phone, in local time", async () => {
  const run = await started("shop:5");
  const { data } = (await ask(server, `/runs/${run}/steps/ask/link`, { method: "POST", body: "{}" })) as {
    data: { url: string };
  };
  for (const colorScheme of ["light", "dark"] as const) {
    const phone = await browser.newContext({
      viewport: { width: 360, height: 740 },
      timezoneId: "Asia/Tokyo",
      colorScheme,
    });
    phone.setDefaultTimeout(PATIENCE);
    watch(phone, server.url, sins);
    const other = await phone.newPage();
    await other.goto(data.url);
    await other.getByRole("heading", { name: "Deploy shop:5?" }).waitFor();
    await other.getByRole("heading", { name: "If it is approved" }).waitFor();
    await other.getByText("not known yet").waitFor();
    await other.locator(".alarm").getByText("approved").waitFor();
    const until = other.locator(".alarm time");
    await other.waitForFunction(() => !document.querySelector(".alarm time")?.textContent?.includes("UTC"));
    const local = await until.evaluate((time: HTMLTimeElement) =>
      new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" }).format(Date.parse(time.dateTime)),
    );
    assert.ok((await until.textContent())?.startsWith(local));
    const wide = await other.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${wide} pixels too wide`);
    assert.deepEqual(await axe(other), [], colorScheme);
    await shot(other, `approval-link-${colorScheme}`);
    if (colorScheme === "dark") {
      await other.getByLabel("Comment (optional)").fill("fine");
      await other.getByText("Approve", { exact: true }).click();
      assert.equal(await state(run), "paused", "one tap decides nothing");
      await other.getByRole("button", { name: "Yes, approve" }).click();
      await other.getByText("You have approved.").waitFor();
      assert.equal(await state(run), "completed");
      await shot(other, "approval-link-taken");
    }
    await phone.close();
  }
});

test("no page threw, contacted another host, or violated the policy", () => {
  assert.deepEqual(sins.all, []);
});
