// A server for the tests of one file: the real binary on a directory that goes away.

import { fileURLToPath } from "node:url";
import { after } from "node:test";
import { ThrowAwayServer } from "../src/testing.js";

const BUILT = fileURLToPath(new URL("../../../../target/debug/stepwell", import.meta.url));
export const BINARY = process.env["STEPWELL_BINARY"] || BUILT;

export function startServer(): Promise<ThrowAwayServer> {
  return ThrowAwayServer.start({ binary: BINARY });
}

/** One server for all tests of a file. */
export function shared(): () => Promise<ThrowAwayServer> {
  let running: Promise<ThrowAwayServer> | undefined;
  after(async () => (await running)?.stop());
  return () => (running ??= startServer());
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
