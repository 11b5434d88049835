// Which server to talk to, and with which key: as the command line finds them.

import { StepwellError } from "./problem.js";

export interface Config {
  url: string;
  key?: string | undefined;
}

export interface Where {
  url?: string;
  key?: string;
  /** The data directory of a server on this machine. */
  data?: string;
}

/**
 * The given values, else `STEPWELL_URL` and `STEPWELL_KEY`, else those in the data directory. The key in the data
 * directory is sent only to servers on this machine.
 */
export async function findConfig(where: Where = {}): Promise<Config> {
  const directory = where.data ?? dataDirectory();
  let url = where.url ?? variable("STEPWELL_URL");
  if (url === undefined) {
    url = await read(directory, "server.url");
    if (url === undefined) {
      throw new StepwellError(`no server: set STEPWELL_URL, or start \`stepwell serve\` (looked in ${directory})`);
    }
  }
  const key = where.key ?? variable("STEPWELL_KEY") ?? (isLocal(url) ? await read(directory, "admin.key") : undefined);
  return { url: url.replace(/\/+$/, ""), key };
}

export function variable(name: string): string | undefined {
  // Browsers have no environment.
  return (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env[name] || undefined;
}

function dataDirectory(): string {
  const home = variable("XDG_DATA_HOME") ?? `${variable("HOME") ?? variable("USERPROFILE") ?? "."}/.local/share`;
  return variable("STEPWELL_DATA") ?? `${home}/stepwell`;
}

async function read(directory: string, name: string): Promise<string | undefined> {
  try {
    const files = await import("node:fs/promises");
    return (await files.readFile(`${directory}/${name}`, "utf8")).trim() || undefined;
  } catch {
    return undefined;
  }
}

export function isLocal(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
