// Reloads what events report as changed: events in quick succession cause one reload, slow responses space them out.
import type { QueryClient, QueryKey } from "@tanstack/react-query";
import type { LiveEvent } from "./stream";

/** Minimum time between two reloads of the same data. */
const RUN_PAUSE = 200;
const LIST_PAUSE = 1_000;
/** A slow reload is followed by a pause this many times as long. */
const SLOW = 2;

export class Refresher {
  private waiting = new Map<string, { key: QueryKey; due: number }>();
  private lastTook = new Map<string, number>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: QueryClient) {}

  event(event: LiveEvent): void {
    this.soon(["run", event.run_id], RUN_PAUSE);
    this.soon(["runs"], LIST_PAUSE);
    this.soon(["approvals"], event.type === "entered" || event.type === "held" ? RUN_PAUSE : LIST_PAUSE);
    if (event.type === "created") this.soon(["schedules"], LIST_PAUSE);
    if (event.type === "ended") this.soon(["usage"], LIST_PAUSE);
  }

  /** Everything may have changed. */
  all(): void {
    void this.client.invalidateQueries();
  }

  private soon(key: QueryKey, pause: number): void {
    const name = JSON.stringify(key);
    if (this.waiting.has(name)) return;
    const wait = Math.max(pause, (this.lastTook.get(name) ?? 0) * SLOW);
    this.waiting.set(name, { key, due: performance.now() + wait });
    this.schedule();
  }

  private schedule(): void {
    if (this.timer !== undefined || this.waiting.size === 0) return;
    const next = Math.min(...[...this.waiting.values()].map((one) => one.due));
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.look();
      },
      Math.max(next - performance.now(), 16),
    );
  }

  private look(): void {
    const now = performance.now();
    for (const [name, { key, due }] of this.waiting) {
      if (due > now + 1) continue;
      const begun = now;
      // A reload in progress started before the event: it is discarded and repeated.
      const done = this.client.invalidateQueries({ queryKey: key });
      this.waiting.delete(name);
      void done.then(() => this.took(name, performance.now() - begun));
    }
    this.schedule();
  }

  private took(name: string, ms: number): void {
    if (this.lastTook.size > 500) this.lastTook.clear();
    this.lastTook.set(name, ms);
  }
}
