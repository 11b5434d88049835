// Lays out a graph whenever its shape changes: small graphs at once, large ones in a worker.
import { useEffect, useMemo, useState } from "react";
import { type Boxes, layout, type Shape } from "./layout";

/** Up to this many boxes the layout is faster than a round trip to the worker. */
const SMALL = 100;
/** Cached layouts. */
const KEPT = 8;

const kept = new Map<string, Boxes>();
const wanted = new Map<string, ((boxes: Boxes) => void)[]>();
let worker: Worker | undefined;

function remember(key: string, boxes: Boxes): void {
  if (kept.size >= KEPT) kept.delete(kept.keys().next().value ?? "");
  kept.set(key, boxes);
}

/** Each shape is laid out once, even for several callers. */
function aside(key: string, then: (boxes: Boxes) => void): void {
  if (!worker) {
    worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<{ key: string; boxes: Boxes }>) => {
      remember(event.data.key, event.data.boxes);
      const waiting = wanted.get(event.data.key) ?? [];
      wanted.delete(event.data.key);
      for (const one of waiting) one(event.data.boxes);
    };
  }
  const waiting = wanted.get(key);
  if (waiting) return void waiting.push(then);
  wanted.set(key, [then]);
  worker.postMessage({ key, shape: JSON.parse(key) as Shape });
}

/** Undefined until the first layout is ready; then the last one, while another is computed. */
export function useLayout(shape: Shape | undefined): Boxes | undefined {
  const key = useMemo(() => (shape ? JSON.stringify(shape) : undefined), [shape]);
  const small = (shape?.nodes.length ?? 0) <= SMALL;
  // The same shape has the same layout, regardless of other changes.
  const atOnce = useMemo(() => {
    if (key === undefined) return undefined;
    if (!small) return kept.get(key);
    const { nodes, edges } = JSON.parse(key) as Shape;
    return layout(nodes, edges);
  }, [key, small]);
  const [late, setLate] = useState<Boxes>();
  useEffect(() => {
    if (key === undefined || atOnce) return;
    let on = true;
    aside(key, (boxes) => on && setLate(boxes));
    return () => {
      on = false;
    };
  }, [key, atOnce]);
  return atOnce ?? late;
}
