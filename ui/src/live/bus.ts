// Live events for views that patch their data instead of reloading it.
import type { LiveEvent } from "./stream";

const listeners = new Set<(event: LiveEvent) => void>();

export function tell(event: LiveEvent): void {
  for (const one of listeners) one(event);
}

export function onEvent(listener: (event: LiveEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
