// The places of all steps, laid out anew whenever the shape changes: small graphs at once, large ones in a worker.

import { useEffect, useMemo, useRef, useState } from "react";
import type { Model } from "../model/types";
import { arrange, type Boxes, shapeOf, writtenBoxes } from "./boxes";

/** Up to this many steps the layout is quicker than asking for it. */
const SMALL = 120;

export interface Placed {
  boxes: Boxes;
  /** Whether the text says where nodes stand. */
  written: boolean;
}

export function useBoxes(model: Model): Placed {
  const written = useMemo(() => writtenBoxes(model), [model]);
  const shape = useMemo(() => shapeOf(model), [model]);
  const key = useMemo(() => JSON.stringify(shape), [shape]);
  const small = shape.nodes.length <= SMALL;
  // The same shape has the same layout, whatever else changed in the text.
  const atOnce = useMemo(() => (written || !small ? null : arrange(JSON.parse(key) as typeof shape)), [written, small, key]);
  const [late, setLate] = useState<Boxes>(new Map());
  const worker = useRef<Worker | null>(null);

  useEffect(() => {
    if (written || small) return;
    worker.current ??= new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    const at = worker.current;
    at.onmessage = (event: MessageEvent<{ key: string; boxes: Boxes }>) => {
      if (event.data.key === key) setLate(event.data.boxes);
    };
    at.postMessage({ key, shape: JSON.parse(key) as typeof shape });
  }, [written, small, key]);

  useEffect(
    () => () => {
      worker.current?.terminate();
      worker.current = null;
    },
    [],
  );

  return useMemo(() => ({ boxes: written ?? atOnce ?? late, written: written !== null }), [written, atOnce, late]);
}
