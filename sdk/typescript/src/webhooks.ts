// Requests that Stepwell signs, and calls that it waits for. Signatures follow Standard Webhooks.

import { ATTEMPTS, ConnectionFailed, StepwellError, pause, problemOf, sleep } from "./problem.js";
import type { Json } from "./types.js";

/** Seconds that the clock of the sender may differ. */
const TOLERANCE = 300;
const TIMEOUT = 30_000;

/** The request was not signed with the secret, or not recently. */
export class InvalidSignature extends StepwellError {
  override name = "InvalidSignature";
}

export type HeaderSource = Headers | Record<string, string | string[] | undefined>;

/** Throws `InvalidSignature` unless the secret signed the request. `payload` is the body as received. */
export async function verify(
  payload: string | Uint8Array,
  headers: HeaderSource,
  secret: string,
  options: { tolerance?: number; now?: number } = {},
): Promise<void> {
  const [message, timestamp, signatures] = ["id", "timestamp", "signature"].map((part) => {
    const value = header(headers, `webhook-${part}`);
    if (value === undefined) {
      throw new InvalidSignature(`the header webhook-${part} is missing`);
    }
    return value;
  }) as [string, string, string];
  if (!/^\d+$/.test(timestamp)) {
    throw new InvalidSignature("webhook-timestamp is not a number of seconds");
  }
  const now = options.now ?? Date.now() / 1_000;
  if (Math.abs(now - Number(timestamp)) > (options.tolerance ?? TOLERANCE)) {
    throw new InvalidSignature("the request is too old, or the clocks differ");
  }
  const key = await keyOf(secret, "verify");
  const content = signed(payload, message, timestamp);
  // While a secret is changed, there is one signature for each.
  for (const part of signatures.split(" ")) {
    const [version, value] = part.split(",", 2);
    const bytes = version === "v1" && value !== undefined ? decode(value) : undefined;
    if (bytes !== undefined && (await crypto.subtle.verify("HMAC", key, bytes, content))) {
      return;
    }
  }
  throw new InvalidSignature("no signature matches");
}

/** The headers of a signed request, such as a call of a trigger with `verify`. `message` is its id. */
export async function sign(
  payload: string | Uint8Array,
  message: string,
  secret: string,
  options: { timestamp?: number } = {},
): Promise<Record<string, string>> {
  const timestamp = String(options.timestamp ?? Math.floor(Date.now() / 1_000));
  const key = await keyOf(secret, "sign");
  const signature = await crypto.subtle.sign("HMAC", key, signed(payload, message, timestamp));
  const value = btoa(String.fromCharCode(...new Uint8Array(signature)));
  return { "webhook-id": message, "webhook-timestamp": timestamp, "webhook-signature": `v1,${value}` };
}

/**
 * Answers a step that waits for a webhook. `address` is its `{{wait.<step>.url}}`; no key is needed. Repeated after a
 * lost connection; a step takes one answer, so a repetition is harmless.
 */
export async function answerWait(address: string, body: Json = {}): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const last = attempt >= ATTEMPTS;
    let delay = pause(attempt);
    try {
      const headers = { "content-type": "application/json" };
      const signal = AbortSignal.timeout(TIMEOUT);
      const response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body), signal });
      if (response.ok) {
        return;
      }
      const found = await problemOf(response);
      // An earlier attempt arrived, and its answer was lost.
      if (attempt > 1 && found.code === "repeated") {
        return;
      }
      if (!found.isTemporary || last) {
        throw found;
      }
      delay = pause(attempt, found);
    } catch (error) {
      if (error instanceof StepwellError) {
        throw error;
      }
      if (last) {
        throw new ConnectionFailed(`${new URL(address).origin}: ${(error as Error).message}`, { cause: error });
      }
    }
    await sleep(delay);
  }
}

function header(headers: HeaderSource, name: string): string | undefined {
  if (headers instanceof Headers) {
    return headers.get(name) ?? undefined;
  }
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found[0] : found;
}

function signed(payload: string | Uint8Array, message: string, timestamp: string): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const head = encoder.encode(`${message}.${timestamp}.`);
  const body = typeof payload === "string" ? encoder.encode(payload) : payload;
  const all = new Uint8Array(head.length + body.length);
  all.set(head);
  all.set(body, head.length);
  return all;
}

function keyOf(secret: string, usage: KeyUsage): Promise<CryptoKey> {
  let bytes: Uint8Array<ArrayBuffer> | undefined = new TextEncoder().encode(secret);
  if (secret.startsWith("whsec_")) {
    bytes = decode(secret.slice("whsec_".length));
    if (bytes === undefined) {
      throw new InvalidSignature("what follows whsec_ in the secret is not base64");
    }
  }
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
