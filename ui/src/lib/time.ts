// Instants and durations in words.

const UNITS: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
];

/** `850 ms`, `2.4 s`, `3 min 20 s`, `2 d 4 h`. */
export function length(ms: number): string {
  if (ms < 0) return "0 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  const at = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[at] ?? ["s", 1_000];
  const [smaller, small] = UNITS[at + 1] ?? ["s", 1_000];
  const whole = Math.floor(ms / size);
  const rest = Math.floor((ms - whole * size) / small);
  return rest > 0 ? `${whole} ${unit} ${rest} ${smaller}` : `${whole} ${unit}`;
}

/** `in 5 min`, `3 h ago`, `just now`. */
export function relative(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  if (Number.isNaN(ms)) return at;
  if (Math.abs(ms) < 2_000) return "just now";
  const [unit, size] = UNITS.find(([, size]) => Math.abs(ms) >= size) ?? ["s", 1_000];
  const count = `${Math.round(Math.abs(ms) / size)} ${unit}`;
  return ms > 0 ? `in ${count}` : `${count} ago`;
}

const FULL = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

export function full(at: string): string {
  const time = Date.parse(at);
  return Number.isNaN(time) ? at : FULL.format(time);
}

export function between(
  from: string | null | undefined,
  to: string | null | undefined,
  now: number,
): number | undefined {
  if (!from) return undefined;
  return Math.max((to ? Date.parse(to) : now) - Date.parse(from), 0);
}
