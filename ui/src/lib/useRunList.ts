// The long list of runs as a hook: loads pages, follows events, and batches events into one update.
import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { page } from "../api/client";
import type { RunFilter, RunSummary } from "../api/queries";
import { onEvent } from "../live/bus";
import type { LiveEvent } from "../live/stream";
import { EMPTY, type RunList, withEvents, withFirst, withNext } from "./runList";

const PAGE = 200;
/** Later pages are larger: a user who scrolls that far usually goes on. */
const NEXT_PAGE = 1_000;
/** The minimum time between updates. */
const BEAT = 250;
const LOOK_AGAIN = 1_000;

type Action =
  | { type: "clear" }
  | { type: "first" | "next"; page: { data: RunSummary[]; next?: string | null } }
  | { type: "events"; events: LiveEvent[]; wanted: readonly string[] };

function reduce(list: RunList, action: Action): RunList {
  switch (action.type) {
    case "clear":
      return EMPTY;
    case "first":
      return withFirst(list, action.page);
    case "next":
      return withNext(list, action.page);
    case "events":
      return withEvents(list, action.events, action.wanted);
  }
}

export function useRunList(filter: RunFilter): RunList & { more: () => void; error: unknown; retry: () => void } {
  const [list, dispatch] = useReducer(reduce, EMPTY);
  const [error, setError] = useState<unknown>();
  const [round, setRound] = useState(0);
  const busy = useRef(false);
  const key = JSON.stringify(filter);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round is the signal to begin again
  useEffect(() => {
    const wanted = JSON.parse(key) as RunFilter;
    const statuses = wanted.status ? wanted.status.split(",") : [];
    const stop = new AbortController();
    let events: LiveEvent[] = [];
    let [beat, look]: (ReturnType<typeof setTimeout> | undefined)[] = [];
    const first = async () => {
      look = undefined;
      try {
        const got = await page<RunSummary>("/runs", { ...wanted, limit: PAGE }, stop.signal);
        if (stop.signal.aborted) return;
        dispatch({ type: "first", page: got });
        setError(undefined);
      } catch (failure) {
        if (!stop.signal.aborted) setError(failure);
      }
    };
    dispatch({ type: "clear" });
    setError(undefined);
    void first();
    const off = onEvent((event) => {
      events.push(event);
      beat ??= setTimeout(() => {
        beat = undefined;
        dispatch({ type: "events", events, wanted: statuses });
        events = [];
      }, BEAT);
      // An event does not contain everything that the list shows.
      if (["created", "started", "ended", "retried", "adopted"].includes(event.type))
        look ??= setTimeout(() => void first(), LOOK_AGAIN);
    });
    return () => {
      off();
      stop.abort();
      clearTimeout(beat);
      clearTimeout(look);
    };
  }, [key, round]);

  const { next } = list;
  const more = useCallback(() => {
    if (busy.current || !next) return;
    busy.current = true;
    page<RunSummary>("/runs", { ...(JSON.parse(key) as RunFilter), limit: NEXT_PAGE, cursor: next })
      .then((got) => dispatch({ type: "next", page: got }))
      .catch(setError)
      .finally(() => {
        busy.current = false;
      });
  }, [key, next]);

  return { ...list, more, error, retry: () => setRound((before) => before + 1) };
}
