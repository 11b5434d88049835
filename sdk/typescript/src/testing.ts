// For tests of your own code: definitions on virtual time, and a server that is thrown away afterwards. Needs Node, Deno
// or Bun.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "./client.js";
import { StepwellError } from "./problem.js";

export { SimulationFailed, simulate } from "./simulate.js";
export type { SimulateOptions, Simulated } from "./simulate.js";

const PATIENCE = 30_000;

export interface ServerOptions {
  /** The binary that serves: by default `STEPWELL_BINARY`, else `stepwell` on the path. */
  binary?: string;
  /** Its configuration, in YAML or JSON. */
  config?: string;
  /** Variables for its environment, such as `STEPWELL_DATABASE`. */
  environment?: Record<string, string>;
}

/** A server on a directory of its own, which goes away with it. */
export class ThrowAwayServer {
  url = "";
  #process: ChildProcess | undefined;
  #listen = "127.0.0.1:0";

  private constructor(
    readonly options: ServerOptions,
    readonly home: string,
  ) {}

  static async start(options: ServerOptions = {}): Promise<ThrowAwayServer> {
    const server = new ThrowAwayServer(options, await mkdtemp(join(tmpdir(), "stepwell-")));
    try {
      if (options.config !== undefined) {
        await writeFile(server.#configuration, options.config);
      }
      await server.start();
    } catch (error) {
      await rm(server.home, { recursive: true, force: true });
      throw error;
    }
    return server;
  }

  get #configuration(): string {
    return join(this.home, "stepwell.yaml");
  }

  get data(): string {
    return join(this.home, "data");
  }

  async key(): Promise<string> {
    return (await readFile(join(this.data, "admin.key"), "utf8")).trim();
  }

  async client(): Promise<Client> {
    return new Client({ url: this.url, key: await this.key() });
  }

  /** Starts the server, again after `kill`, on the same address and directory. */
  async start(): Promise<void> {
    const { binary, config, environment } = this.options;
    const env: NodeJS.ProcessEnv = { ...process.env, ...environment, STEPWELL_DATA: this.data };
    delete env["STEPWELL_URL"];
    delete env["STEPWELL_KEY"];
    const file = config === undefined ? [] : ["--config", this.#configuration];
    const command = ["serve", "--listen", this.#listen, ...file];
    const stdio: ["ignore", "pipe", "pipe"] = ["ignore", "pipe", "pipe"];
    const child = spawn(binary ?? (process.env["STEPWELL_BINARY"] || "stepwell"), command, { env, stdio });
    this.#process = child;
    let log = "";
    child.stderr.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-10_000)));
    // It says where it is as soon as it serves.
    const lines = createInterface({ input: child.stdout });
    const started = once(lines, "line", { signal: AbortSignal.timeout(PATIENCE) });
    const ended = once(child, "exit");
    const first = await Promise.race([started.then(() => true), ended.then(() => false)]);
    if (!first) {
      throw new StepwellError(`the server did not start: ${log.trim()}`);
    }
    this.url = (await readFile(join(this.data, "server.url"), "utf8")).trim();
    this.#listen = new URL(this.url).host;
  }

  /** Ends the server at once, as a crash does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Ends the server and removes all that it stored. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.home, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const ended = once(child, "exit");
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE);
    await ended;
    clearTimeout(timer);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
