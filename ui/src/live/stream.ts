// One stream of events for the whole page. It reconnects automatically after a break and resumes where it stopped.
import { address, type Schemas } from "../api/client";
import { EventReader } from "./parse";

export interface LiveEvent {
  run_id: string;
  type: string;
  step?: string;
  status?: string;
  version: number;
  at: string;
}

/** A notification for the signed-in user. */
export type Notice = Schemas["Message"];

export interface Listener {
  event(event: LiveEvent): void;
  notice(notice: Notice): void;
  /** True while events arrive; false while the server is unreachable. `again` is called after a gap. */
  connected(on: boolean): void;
  again(): void;
}

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5_000;

/** Follows the organisation's events until the returned function is called. */
export function follow(listener: Listener): () => void {
  const stop = new AbortController();
  void loop(listener, stop.signal);
  return () => stop.abort();
}

async function loop(listener: Listener, signal: AbortSignal): Promise<void> {
  let place: string | undefined;
  let pause = FIRST_PAUSE;
  let broke = false;
  while (!signal.aborted) {
    const reader = new EventReader();
    reader.place = place;
    const ended = await once(reader, listener, signal, () => {
      listener.connected(true);
      // Events between the page's first load and the start of the stream were missed.
      if (place === undefined || broke) listener.again();
      pause = FIRST_PAUSE;
      broke = false;
    });
    place = reader.place;
    if (signal.aborted) return;
    listener.connected(false);
    if (ended === "signed-out") return;
    // The id is ahead of the log, after a restore: start over.
    if (ended === "bad-place") [place, broke] = [undefined, true];
    await sleep(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

type Ended = "over" | "signed-out" | "bad-place";

async function once(reader: EventReader, listener: Listener, signal: AbortSignal, opened: () => void): Promise<Ended> {
  try {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (reader.place !== undefined) headers["Last-Event-ID"] = reader.place;
    const answer = await fetch(address("/events", { tests: true }), { headers, signal, credentials: "same-origin" });
    if (answer.status === 401 || answer.status === 403) return "signed-out";
    if (answer.status === 422) return "bad-place";
    if (!answer.ok || !answer.body) return "over";
    opened();
    const body = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await body.read();
      if (done) return "over";
      for (const told of reader.read(value)) {
        const data = parsed(told.data);
        if (data === undefined) continue;
        if (told.type === "notification") listener.notice(data as Notice);
        else listener.event(data as LiveEvent);
      }
    }
  } catch {
    return "over";
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    });
  });
}
