// Panes with borders to drag, by pointer or arrow keys. Sizes are remembered under a name.
import { Children, Fragment, type KeyboardEvent, type PointerEvent, type ReactNode, useRef, useState } from "react";
import { LEAST, moved, remembered, rememberSizes } from "../lib/panes";

interface Props {
  name: string;
  direction: "row" | "column";
  /** The shares at first. */
  begin: readonly number[];
  labels: readonly string[];
  children: ReactNode;
}

const KEY_STEP = 0.03;

export function Panes({ name, direction, begin, labels, children }: Props) {
  const [sizes, setSizes] = useState(() => remembered(name, begin));
  const box = useRef<HTMLDivElement>(null);
  const row = direction === "row";
  const move = (at: number, by: number) => {
    const next = moved(sizes, at, by);
    setSizes(next);
    rememberSizes(name, next);
  };
  const drag = (at: number) => (event: PointerEvent<HTMLDivElement>) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const length = row ? box.current?.clientWidth : box.current?.clientHeight;
    const by = row ? event.movementX : event.movementY;
    if (length && by) move(at, by / length);
  };
  const press = (at: number) => (event: KeyboardEvent<HTMLDivElement>) => {
    const steps: Record<string, number> = row
      ? { ArrowLeft: -KEY_STEP, ArrowRight: KEY_STEP }
      : { ArrowUp: -KEY_STEP, ArrowDown: KEY_STEP };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    move(at, by);
  };
  const back = () => {
    setSizes([...begin]);
    rememberSizes(name, begin);
  };
  return (
    <div className={`panes panes-${direction}`} ref={box}>
      {Children.toArray(children).map((child, at) => (
        <Fragment key={at}>
          {at > 0 && (
            <div
              className="pane-border"
              role="separator"
              tabIndex={0}
              aria-orientation={row ? "vertical" : "horizontal"}
              aria-label={`Resize ${labels[at - 1] ?? ""}`}
              aria-valuenow={Math.round((sizes[at - 1] ?? 0) * 100)}
              aria-valuemin={Math.round(LEAST * 100)}
              aria-valuemax={100}
              onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
              onPointerMove={drag(at - 1)}
              onKeyDown={press(at - 1)}
              onDoubleClick={back}
              title="Drag to resize; double-click for the default"
            />
          )}
          <div className="pane" style={{ flexGrow: (sizes[at] ?? 1) * 100 }}>
            {child}
          </div>
        </Fragment>
      ))}
    </div>
  );
}
