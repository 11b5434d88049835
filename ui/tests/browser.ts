// Shared by browser tests: the real server on a temporary directory, Chromium, and checks that apply to every page.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

/** Long enough for a machine with other load. */
export const PATIENCE = 60_000;
export const SHOTS = path.resolve("shots");

export interface Server {
  url: string;
  /** Signs a browser in, once. */
  link: string;
  key: string;
  stop: () => Promise<void>;
  /** Ends the process and keeps the data; `again` starts it on the same address. */
  halt: () => Promise<void>;
  again: () => Promise<void>;
}

function binary(): string {
  const asked = process.env.STEPWELL_BIN;
  const target = process.env.CARGO_TARGET_DIR ?? "../target";
  const found = [asked, `${target}/debug/stepwell`, `${target}/release/stepwell`].find((one) => one && existsSync(one));
  if (!found) throw new Error("there is no binary: `cargo build -p stepwell`, or name one with STEPWELL_BIN");
  return path.resolve(found);
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, "127.0.0.1", done));
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Optionally with a configuration. */
export async function serve(config?: string): Promise<Server> {
  const data = mkdtempSync(path.join(tmpdir(), "stepwell-ui-"));
  const port = await freePort();
  const file = `${data}.yaml`;
  if (config) writeFileSync(file, config);
  const url = `http://127.0.0.1:${port}`;
  const args = ["serve", "--data", data, "--listen", `127.0.0.1:${port}`, ...(config ? ["--config", file] : [])];
  let child: ChildProcess = spawn(binary(), args, { stdio: ["ignore", "pipe", "pipe"] });
  const link = await printed(child);
  const halt = async () => {
    const over = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    await over;
  };
  const again = async () => {
    child = spawn(binary(), args, { stdio: "ignore" });
    await ready(url);
  };
  const stop = async () => {
    await halt();
    rmSync(data, { recursive: true, force: true });
    rmSync(file, { force: true });
  };
  return { url, link, key: readFileSync(path.join(data, "admin.key"), "utf8").trim(), stop, halt, again };
}

/** The link that signs in, which the first start prints. */
function printed(child: ChildProcess): Promise<string> {
  let said = "";
  return new Promise<string>((done, fail) => {
    const timer = setTimeout(() => fail(new Error(`the server printed no link:\n${said}`)), PATIENCE);
    const read = (chunk: Buffer) => {
      said += chunk.toString();
      const found = /http\S+\/sign-in\/\S+/.exec(said);
      if (!found) return;
      clearTimeout(timer);
      done(found[0]);
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.on("exit", (code) => fail(new Error(`the server ended with ${code}:\n${said}`)));
  });
}

async function ready(url: string): Promise<void> {
  const until = Date.now() + PATIENCE;
  for (;;) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > until) throw new Error("the server is not ready again");
    await new Promise((done) => setTimeout(done, 100));
  }
}

export function launch(): Promise<Browser> {
  const executablePath =
    process.env.CHROMIUM ??
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((one) => existsSync(one));
  if (!executablePath) throw new Error("there is no Chromium: install Debian's `chromium`, or name one with CHROMIUM");
  // Chromium cannot use its sandbox as root.
  const root = process.getuid?.() === 0;
  const quiet = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args: root ? ["--no-sandbox", ...quiet] : quiet });
}

/** Violations of a page. */
export interface Sins {
  all: string[];
}

/** Records every request and console message of a context. */
export function watch(context: BrowserContext, url: string, sins: Sins): void {
  const allowed = new URL(url).host;
  context.on("request", (request) => {
    const target = new URL(request.url());
    const inside = target.protocol === "data:" || target.protocol === "blob:" || target.host === allowed;
    if (!inside) sins.all.push(`asked ${request.url()}`);
  });
  context.on("console", (message) => {
    // The browser also logs refusals that a test expects.
    if (message.type() === "error" && !/the server responded with a status of (404|409|422)/.test(message.text()))
      sins.all.push(`console: ${message.text()} ${message.location().url}`);
  });
  context.on("weberror", (error) => sins.all.push(`thrown: ${error.error().message}`));
  void context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`),
    );
  });
}

/** With STEPWELL_DIST=1 pages come from ui/dist, so that a build can be tested without building the server. */
const DIST = process.env.STEPWELL_DIST === "1";

/** A build keeps only the compressed files. */
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};

export async function fromDist(context: BrowserContext): Promise<void> {
  if (!DIST) return;
  await context.route(/.*/, async (route) => {
    const { pathname } = new URL(route.request().url());
    if (/^\/(api|sign-in|approve)\/|^\/docs\/approve/.test(pathname)) return route.fallback();
    const isPage = !pathname.includes(".");
    // Keeps the server's headers, because the policy is under test.
    const { "content-security-policy": policy = "" } = isPage ? (await route.fetch()).headers() : {};
    const name = isPage ? (pathname === "/docs" ? "docs.html" : "index.html") : pathname;
    await route.fulfill({
      body: gunzipSync(readFileSync(path.join("dist", `${name}.gz`))),
      headers: {
        "content-type": TYPES[path.extname(name)] ?? "application/octet-stream",
        ...(isPage ? { "content-security-policy": policy } : {}),
      },
    });
  });
}

/** Opens a link that signs in. A redirect's target cannot come from ui/dist, so the page is then opened directly. */
export async function signIn(page: Page, url: string, link: string): Promise<void> {
  if (!DIST) return void (await page.goto(link));
  await page.context().request.get(link, { maxRedirects: 0 });
  await page.goto(url);
}

/** Faults that axe calls serious or critical. */
export async function axe(page: Page): Promise<string[]> {
  const source = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
  // Not as a script element: the policy of the page forbids that, as it should.
  await page.evaluate(source);
  return page.evaluate(async () => {
    interface Found {
      violations: { id: string; impact: string | null; nodes: { html: string; failureSummary?: string }[] }[];
    }
    const run = (window as unknown as { axe: { run: () => Promise<Found> } }).axe;
    const { violations } = await run.run();
    return violations
      .filter((one) => one.impact === "serious" || one.impact === "critical")
      .flatMap((one) =>
        one.nodes.map(
          (node) => `${one.id}: ${node.html.slice(0, 160)} ${node.failureSummary?.replace(/\s+/g, " ") ?? ""}`,
        ),
      );
  });
}

export async function shot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
}

/** Calls the API as the administrator, or with another key. */
export async function ask(
  server: Server,
  path: string,
  { key = server.key, ...init }: { method?: string; body?: string; key?: string } = {},
): Promise<unknown> {
  const answer = await fetch(`${server.url}/api/v1${path}`, { ...init, headers: { Authorization: `Bearer ${key}` } });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.status === 204 ? undefined : answer.json();
}
