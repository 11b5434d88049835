// The keys that work, in one list.
import { useState } from "react";
import { GOES, setSingleKeys, singleKeys } from "../lib/shortcuts";
import { Dialog } from "./Dialog";

const EVERYWHERE: [string, string][] = [
  ["Ctrl K", "find a page, a workflow or a run"],
  ["?", "this list"],
  ...Object.entries(GOES).map(([key, [, name]]): [string, string] => [`g ${key}`, `go to ${name}`]),
  ["Esc", "close what is open"],
];

const EDITOR: [string, string][] = [
  ["Ctrl S", "save"],
  ["Ctrl Enter", "test run"],
  ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
  ["Ctrl C, X, V", "copy, cut, paste steps"],
  ["Ctrl A", "select all steps"],
  ["Delete", "remove what is selected"],
];

const PANES: [string, string][] = [["← → ↑ ↓", "on the border between two panes: resize them"]];

export default function KeyHelp({ onClose }: { onClose: () => void }) {
  const [on, setOn] = useState(singleKeys);
  const turn = (next: boolean) => {
    setSingleKeys(next);
    setOn(next);
  };
  return (
    <Dialog title="Keys" onClose={onClose}>
      <Group title="Everywhere" keys={EVERYWHERE} />
      <Group title="In the editor" keys={EDITOR} />
      <Group title="On a run" keys={PANES} />
      <label className="check">
        <input type="checkbox" checked={on} onChange={(event) => turn(event.target.checked)} /> Keys without Ctrl work (
        <kbd>?</kbd> and <kbd>g</kbd>)
      </label>
    </Dialog>
  );
}

function Group({ title, keys }: { title: string; keys: [string, string][] }) {
  return (
    <section className="stack">
      <h3>{title}</h3>
      <dl className="facts">
        {keys.map(([key, does]) => (
          <div key={key} className="key-row">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
