// Reads server-sent events, and remembers where a stream stopped.

import type { Event } from "./schema.js";

export class Reader {
  /** The id to resume after. */
  last: string | undefined;
  isOver = false;
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id: string | undefined;

  headers(): Record<string, string> {
    const sent: Record<string, string> = { accept: "text/event-stream" };
    if (this.last !== undefined) {
      sent["last-event-id"] = this.last;
    }
    return sent;
  }

  /** Forgets an event that the connection cut off. */
  reset(): void {
    this.#rest = "";
    this.#clear();
  }

  *read(chunk: string): Generator<Event> {
    this.#rest += chunk;
    for (;;) {
      const end = this.#rest.indexOf("\n");
      if (end < 0) {
        return;
      }
      const line = this.#rest.slice(0, end).replace(/\r$/, "");
      this.#rest = this.#rest.slice(end + 1);
      const event = this.#line(line);
      if (event !== undefined) {
        yield event;
      }
    }
  }

  #clear(): void {
    this.#name = "";
    this.#data = [];
    this.#id = undefined;
  }

  #line(line: string): Event | undefined {
    if (line === "") {
      return this.#dispatch();
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      return undefined;
    }
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") {
      this.#data.push(value);
    } else if (name === "event") {
      this.#name = value;
    } else if (name === "id") {
      this.#id = value;
    }
    return undefined;
  }

  #dispatch(): Event | undefined {
    const [name, data, id] = [this.#name, this.#data, this.#id];
    this.#clear();
    if (id !== undefined) {
      this.last = id;
    }
    if (data.length === 0) {
      return undefined;
    }
    this.isOver = name === "end";
    return { type: name, ...(JSON.parse(data.join("\n")) as object) } as Event;
  }
}
