// A server for the tests of one file: the real binary on a directory that goes away.

import { fileURLToPath } from "node:url";
import { after } from "node:test";
import { ThrowAwayServer } from "../src/testing.js";

const BUILT = fileURLToPath(new URL("../../../../target/debug/stepwell", import.meta.url));
export const BINARY = process.env["STEPWELL_BINARY"] || BUILT;

export function startServer(): Promise<ThrowAwayServer> {
  return ThrowAwayServer.start({ binary: BINARY });
}

/** One server for all tests of a file, on this database or on the embedded store. */
export function shared(database?: string): () => Promise<ThrowAwayServer> {
  let running: Promise<ThrowAwayServer> | undefined;
  after(async () => (await running)?.stop());
  const key = { STEPWELL_MASTER_KEY: "5a".repeat(32) };
  const environment = database === undefined ? {} : { STEPWELL_DATABASE: database, ...key };
  return () => (running ??= ThrowAwayServer.start({ binary: BINARY, environment }));
}

let numbers = 0;

export function unique(name: string): string {
  numbers += 1;
  return `${name}-${numbers}`;
}

export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of source) {
    found.push(item);
  }
  return found;
}

export const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
