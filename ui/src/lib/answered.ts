// The answers given in this tab, so that an acknowledgement stays: over other events, other pages and a reload.
import { useSyncExternalStore } from "react";
import type { Approval } from "../api/queries";

export interface Given {
  asked: Approval;
  user: string;
  /** `approved`, `denied`, or what was said about a call of unknown outcome. */
  answer: string;
  comment: string;
  at: string;
}

const KEY = "stepwell.answered";
const KEPT = 30;
const listeners = new Set<() => void>();
let list: Given[] = read();

function read(): Given[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? (kept as Given[]).filter((one) => one?.asked?.id && one.user) : [];
  } catch {
    return [];
  }
}

function keep(next: Given[]): void {
  list = next.slice(0, KEPT);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(list));
  } catch {
    // Too large for the browser: it is kept until the page is left.
  }
  for (const one of listeners) one();
}

/** Only for answers that the server has accepted. */
export function remember(given: Given): void {
  keep([given, ...list.filter((one) => !same(one.asked, given.asked))]);
}

export function forgetAnswers(): void {
  keep([]);
}

/** The same question, not a later one of the same step. */
export function same(a: Approval, b: Approval): boolean {
  return a.id === b.id && a.digest === b.digest && a.attempt === b.attempt;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The newest first. */
export function useAnswered(user: string | undefined): Given[] {
  const all = useSyncExternalStore(subscribe, () => list);
  return all.filter((one) => one.user === user);
}
