// Saves the first version or the next one, and detects that someone else saved first.

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { ask, Problem, part, type Schemas } from "../api/client";

type Summary = Schemas["WorkflowSummary"];
type Workflow = Schemas["Workflow"];

/** The version that the text is based on. */
export interface Base {
  name: string;
  version: number;
  tag: string;
  source: string;
}

export type Outcome =
  | { kind: "saved"; name: string; version: number; isNew: boolean }
  /** Another version was saved meanwhile. */
  | { kind: "conflict"; theirs: Base }
  /** A workflow of that name exists that this text is not based on. */
  | { kind: "exists"; name: string }
  | { kind: "failed"; error: unknown };

export async function load(name: string, signal?: AbortSignal): Promise<Base> {
  const answer = await ask(`/workflows/${part(name)}`, signal ? { signal } : {});
  const { data } = (await answer.json()) as { data: Workflow };
  return { name: data.name, version: data.version, tag: answer.headers.get("etag") ?? "*", source: data.source };
}

async function write(text: string, base: Base | undefined, force: boolean): Promise<Outcome> {
  if (!base) {
    const answer = await ask("/workflows", { method: "POST", text });
    const { data } = (await answer.json()) as { data: Summary };
    return { kind: "saved", name: data.name, version: data.version, isNew: true };
  }
  const headers: Record<string, string> = force ? {} : { "If-Match": base.tag };
  const answer = await ask(`/workflows/${part(base.name)}`, { method: "PUT", text, headers });
  const { data } = (await answer.json()) as { data: Summary };
  return { kind: "saved", name: data.name, version: data.version, isNew: false };
}

/** `name` is what the text calls the workflow. */
export async function save(text: string, name: string, base: Base | undefined, force: boolean): Promise<Outcome> {
  try {
    return await write(text, base, force);
  } catch (error) {
    if (!(error instanceof Problem)) return { kind: "failed", error };
    if (error.code === "exists") return { kind: "exists", name };
    if (error.code !== "changed-meanwhile" || !base) return { kind: "failed", error };
    const theirs = await load(base.name);
    // Only a switch changed, not the definition: the text is still based on the newest version.
    if (theirs.version === base.version)
      return write(text, theirs, false).catch((second: unknown) => ({ kind: "failed", error: second }));
    return { kind: "conflict", theirs };
  }
}

export interface Saving {
  busy: boolean;
  outcome: Outcome | null;
  start: (base: Base | undefined, force?: boolean) => Promise<Outcome>;
  clear: () => void;
}

export function useSave(current: () => string, name: string): Saving {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const start = useCallback(
    async (base: Base | undefined, force = false) => {
      setBusy(true);
      const result = await save(current(), name, base, force).catch(
        (error: unknown): Outcome => ({ kind: "failed", error }),
      );
      setOutcome(result);
      setBusy(false);
      if (result.kind === "saved") {
        void client.invalidateQueries({ queryKey: ["workflow", result.name] });
        void client.invalidateQueries({ queryKey: ["workflows"] });
      }
      return result;
    },
    [client, current, name],
  );
  return { busy, outcome, start, clear: useCallback(() => setOutcome(null), []) };
}
