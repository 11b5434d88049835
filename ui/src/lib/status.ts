// Names and styles of statuses. The names are the server's; colour is never the only sign.

export type Tone = "good" | "bad" | "busy" | "wait" | "idle";

const TONES: Record<string, Tone> = {
  completed: "good",
  success: "good",
  received: "good",
  approved: "good",
  running: "busy",
  scheduled: "wait",
  queued: "idle",
  paused: "wait",
  waiting: "wait",
  sleeping: "wait",
  failed: "bad",
  timeout: "bad",
  denied: "bad",
  template_error: "bad",
  cancelled: "idle",
  skipped: "idle",
  pending: "idle",
};

const SIGNS: Record<Tone, string> = { good: "✓", bad: "✕", busy: "▸", wait: "◷", idle: "○" };

const WORDS: Record<string, string> = { template_error: "template error", timeout: "timed out" };

export function tone(status: string): Tone {
  return TONES[status] ?? "idle";
}

export function sign(status: string): string {
  if (status === "skipped") return "–";
  if (status === "cancelled") return "⊘";
  return SIGNS[tone(status)];
}

export function word(status: string): string {
  return WORDS[status] ?? status.replaceAll("_", " ");
}

export const RUN_STATUSES = [
  "scheduled",
  "queued",
  "running",
  "paused",
  "completed",
  "failed",
  "cancelled",
  "timeout",
] as const;

export function isOver(status: string): boolean {
  return ["completed", "failed", "cancelled", "timeout"].includes(status);
}

/** Whether a run can be retried. */
export function isRetryable(status: string): boolean {
  return ["failed", "cancelled", "timeout"].includes(status);
}
