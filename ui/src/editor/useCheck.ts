// The server's faults and warnings for the text, checked shortly after it stops changing.

import { useEffect, useState } from "react";
import { api, Problem, type Fault as Told } from "../api/client";
import type { Fault } from "./model/types";
import { placed } from "./text/faults";

const PAUSE = 350;

export interface Checked {
  /** The text that was checked. */
  text: string;
  faults: Fault[];
  /** What is valid but probably not meant. */
  warnings: Fault[];
  /** Why it could not be checked. */
  trouble: string | null;
}

export function useCheck(text: string): Checked | null {
  const [checked, setChecked] = useState<Checked | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      api<{ warnings: Told[] } | undefined>("/check", { method: "POST", text, signal: stop.signal }).then(
        (answer) =>
          setChecked({ text, faults: [], warnings: placed(text, answer?.warnings ?? [], true), trouble: null }),
        (error: unknown) => {
          if (stop.signal.aborted) return;
          if (error instanceof Problem && error.code === "invalid-definition")
            setChecked({
              text,
              faults: placed(text, error.faults),
              warnings: placed(text, error.warnings, true),
              trouble: null,
            });
          else
            setChecked({
              text,
              faults: [],
              warnings: [],
              trouble: error instanceof Error ? error.message : String(error),
            });
        },
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return checked;
}
