// A test run of the current text: started, watched through the page's live events, answered, stopped, discarded.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { api, part, type Schemas } from "../../api/client";
import { type Run, run as runQuery } from "../../api/queries";
import { isOver } from "../../lib/status";
import type { Json } from "../model/types";

export interface TestRun {
  run: Run | undefined;
  /** Whether a run is shown, even before its data is loaded. */
  shown: boolean;
  going: boolean;
  busy: boolean;
  error: unknown;
  start: (definition: string, input: Json) => Promise<boolean>;
  stop: () => Promise<void>;
  /** Stops it if it is running, and removes it completely. */
  discard: () => Promise<void>;
  /** Answers a gate. */
  answer: (path: string, yes: boolean) => Promise<void>;
}

export function useTestRun(): TestRun {
  const client = useQueryClient();
  const [id, setId] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const query = useQuery({ ...runQuery(id ?? ""), enabled: id !== null });
  const run = id === null ? undefined : query.data;

  const doing = useCallback(async (act: () => Promise<void>): Promise<boolean> => {
    setBusy(true);
    setError(null);
    try {
      await act();
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setBusy(false);
    }
  }, []);

  const remove = useCallback(
    async (old: string | null) => {
      if (old === null) return;
      setId(null);
      client.removeQueries({ queryKey: ["run", old] });
      await api(`/test-runs/${part(old)}`, { method: "DELETE" });
    },
    [client],
  );

  return {
    run,
    shown: id !== null,
    going: id !== null && (!run || !isOver(run.status)),
    busy,
    error: error ?? (id === null ? null : query.error),
    start: useCallback(
      (definition, input) =>
        doing(async () => {
          const started = await api<Schemas["Triggered"]>("/test-runs", {
            method: "POST",
            body: { definition, input },
          });
          // The previous run is obsolete; a failure to remove it is no reason to stop.
          await remove(id).catch(() => undefined);
          setId(started.run_id);
        }),
      [doing, id, remove],
    ),
    stop: useCallback(async () => {
      if (id === null) return;
      await doing(async () => {
        await api(`/runs/${part(id)}/cancel`, { method: "POST", body: { reason: "stopped in the editor" } });
        await client.invalidateQueries({ queryKey: ["run", id] });
      });
    }, [client, doing, id]),
    discard: useCallback(async () => void (await doing(() => remove(id))), [doing, id, remove]),
    answer: useCallback(
      async (path, yes) => {
        if (id === null) return;
        await doing(async () => {
          await api(`/runs/${part(id)}/steps/${part(path)}/${yes ? "approve" : "deny"}`, {
            method: "POST",
            body: { comment: "in a test run" },
          });
          await client.invalidateQueries({ queryKey: ["run", id] });
        });
      },
      [client, doing, id],
    ),
  };
}
