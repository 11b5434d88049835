// The timeline of a run: a row per step, a bar per attempt, loops and for_each collapsed until they are opened.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";
import type { Run } from "../../api/queries";
import { useNow } from "../../lib/now";
import { isOver, tone, word } from "../../lib/status";
import { length } from "../../lib/time";
import { type Line, marks, timeline } from "../../lib/timeline";
import "../../styles/timeline.css";

interface Props {
  run: Run;
  selected: string | undefined;
  onSelect: (path: string) => void;
}

const ITEMS = 50;
const ROW = 30;

export function TimelineView({ run, selected, onSelect }: Props) {
  const clock = useNow();
  const now = isOver(run.status) && run.finished_at ? Date.parse(run.finished_at) : clock;
  const [open, setOpen] = useState<ReadonlyMap<string, number>>(new Map());
  const shown = useMemo(() => timeline(run.tasks, { open, now }), [run.tasks, open, now]);
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: shown.lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 20,
  });
  const span = shown.to - shown.from;
  const toggle = (line: Line) => {
    const next = new Map(open);
    if (line.open) next.delete(line.path);
    else next.set(line.path, ITEMS);
    setOpen(next);
  };
  const more = (line: Line) => setOpen(new Map(open).set(line.path, (open.get(line.path) ?? 0) + 10 * ITEMS));
  return (
    <section className="card flush" aria-label="Timeline">
      <div className="line line-head">
        <span>Step</span>
        <span className="axis" aria-hidden="true">
          {marks(span, 6).map((at) => (
            <span key={at} className="mark" style={{ left: `${(at / span) * 100}%` }}>
              {length(at)}
            </span>
          ))}
        </span>
      </div>
      <div className="lines" ref={box} tabIndex={0} role="region" aria-label="Steps by time">
        <div className="lines-all" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const line = shown.lines[item.index];
            return (
              line && (
                <div
                  key={line.path}
                  className="line"
                  data-selected={line.path === selected}
                  style={{ transform: `translateY(${item.start}px)`, height: ROW }}
                >
                  <span className="line-name" style={{ paddingLeft: 10 + line.depth * 16 }}>
                    {line.inside > 0 ? (
                      <button
                        type="button"
                        className="fold"
                        aria-expanded={line.open}
                        onClick={() => toggle(line)}
                        aria-label={`${line.open ? "Fold" : "Unfold"} ${line.label}`}
                      >
                        {line.open ? "▾" : "▸"}
                      </button>
                    ) : (
                      <span className="fold" />
                    )}
                    <button type="button" className="link cut" onClick={() => onSelect(line.path)} title={line.path}>
                      {line.label}
                    </button>
                    {line.inside > 0 && <span className="dim small nowrap">×{line.inside}</span>}
                    {line.more > 0 && (
                      <button type="button" className="link small nowrap" onClick={() => more(line)}>
                        {line.more} more
                      </button>
                    )}
                  </span>
                  <span className="axis">
                    {line.bars.map((bar) => (
                      <span
                        key={bar.attempt}
                        className={`bar bar-${tone(bar.status)}`}
                        role="img"
                        aria-label={`Attempt ${bar.attempt}: ${word(bar.status)}, ${length(bar.to - bar.from)}`}
                        title={`Attempt ${bar.attempt}: ${word(bar.status)}, ${length(bar.to - bar.from)}, after ${length(bar.from - shown.from)}`}
                        style={{
                          left: `${((bar.from - shown.from) / span) * 100}%`,
                          width: `${((bar.to - bar.from) / span) * 100}%`,
                        }}
                      />
                    ))}
                    {line.bars.length === 0 && <span className="dim small">{word(line.status)}</span>}
                  </span>
                </div>
              )
            );
          })}
        </div>
      </div>
    </section>
  );
}
