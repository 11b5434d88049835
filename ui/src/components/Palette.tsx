// The command palette: one field that finds pages, settings, workflows, and runs by id or label.
import { useQuery } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { runsOf, workflows } from "../api/queries";
import { type Command, fitting, places } from "../lib/palette";
import { useMay } from "../lib/rights";
import { word } from "../lib/status";
import { Dialog } from "./Dialog";

const SHOWN = 12;
/** Runs are searched by the server, once typing pauses. */
const LEAST = 3;
const PAUSE = 250;

export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [settled, setSettled] = useState("");
  const [at, setAt] = useState(0);
  const router = useRouter();
  const may = useMay();
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  // After the dialog has opened, which gives the focus to its first button.
  useEffect(() => field.current?.focus(), []);
  const flows = useQuery(workflows);
  const searched = settled.trim().length >= LEAST;
  const runs = useQuery({ ...runsOf({ q: settled.trim() }, 6), enabled: searched });
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const known = useMemo(() => {
    const named = (flows.data ?? []).flatMap((one): Command[] => {
      const to = `/workflows/${encodeURIComponent(one.name)}`;
      const open: Command = { id: to, group: "Workflow", name: one.name, to, note: one.description ?? "" };
      return may("workflow.define")
        ? [open, { id: `${to}/edit`, group: "Edit", name: one.name, to: `${to}/edit` }]
        : [open];
    });
    return [...places(may), ...named];
  }, [flows.data, may]);
  const found = (searched && runs.data?.runs) || [];
  const shown = [
    ...fitting(known, text, SHOWN),
    ...found.map((run): Command => {
      const labels = Object.entries(run.labels).map(([name, value]) => `${name}=${value}`);
      const note = [word(run.status), run.id, ...labels].join(" · ");
      return { id: run.id, group: "Run", name: run.workflow, to: `/runs/${run.id}`, note };
    }),
  ];
  const current = Math.min(at, Math.max(shown.length - 1, 0));
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const go = (one: Command | undefined) => {
    if (!one) return;
    onClose();
    router.history.push(one.to);
  };
  const press = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = by[event.key];
    if (step !== undefined && shown.length > 0) {
      event.preventDefault();
      setAt((current + step + shown.length) % shown.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      go(shown[current]);
    }
  };
  return (
    <Dialog title="Find" onClose={onClose}>
      <input
        ref={field}
        type="search"
        role="combobox"
        aria-label="Find a page, a workflow or a run"
        aria-expanded="true"
        aria-controls={`${id}list`}
        aria-activedescendant={shown.length > 0 ? `${id}${current}` : undefined}
        placeholder="Page, workflow, run id or label"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={press}
      />
      <div className="palette" role="listbox" id={`${id}list`} aria-label="Found" ref={list}>
        {shown.map((one, n) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys of the list
          <div
            key={one.id}
            id={`${id}${n}`}
            role="option"
            aria-selected={n === current}
            onClick={() => go(one)}
            onPointerMove={() => setAt(n)}
          >
            <span className="palette-group">{one.group}</span> <strong>{one.name}</strong>
            {one.note && <span className="dim small cut">{one.note}</span>}
          </div>
        ))}
      </div>
      {shown.length === 0 && <p className="dim">Nothing is called that.</p>}
    </Dialog>
  );
}
