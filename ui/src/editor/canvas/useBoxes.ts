// The positions of all steps on the canvas: from the text, else from the layout.

import { useMemo } from "react";
import type { Boxes } from "../../lib/layout";
import { useLayout } from "../../lib/useLayout";
import type { Model } from "../model/types";
import { shapeOf, writtenBoxes } from "./boxes";

const NONE: Boxes = new Map();

export interface Placed {
  boxes: Boxes;
  /** Whether the text contains the positions of nodes. */
  written: boolean;
}

export function useBoxes(model: Model): Placed {
  const written = useMemo(() => writtenBoxes(model), [model]);
  const shape = useMemo(() => (written ? undefined : shapeOf(model)), [model, written]);
  const laid = useLayout(shape);
  return useMemo(() => ({ boxes: written ?? laid ?? NONE, written: written !== null }), [written, laid]);
}
