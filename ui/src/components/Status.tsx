// A status as a badge, and an instant in relative words.

import { useNow } from "../lib/now";
import { sign, tone, word } from "../lib/status";
import { full, length, relative } from "../lib/time";

export function Status({ status, note }: { status: string; note?: string }) {
  return (
    <span className={`badge tone-${tone(status)}`}>
      <span aria-hidden="true">{sign(status)}</span>
      <span>{word(status)}</span>
      {note && <span>{note}</span>}
    </span>
  );
}

export function When({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (!at) return <span className="dim">–</span>;
  return (
    <time dateTime={at} title={full(at)} className="nowrap">
      {relative(at, now)}
    </time>
  );
}

/** How long it took, or has taken so far. */
export function Took({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const now = useNow();
  if (!from) return <span className="dim">–</span>;
  return <span className="nowrap">{length((to ? Date.parse(to) : now) - Date.parse(from))}</span>;
}
