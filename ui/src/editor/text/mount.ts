// A CodeMirror editor inside a shadow root: there its styles are set by script and not as <style> elements, which the
// page's Content-Security-Policy forbids.

import { EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

export interface Mounted {
  view: EditorView;
  destroy: () => void;
}

export function mount(host: HTMLElement, doc: string, extensions: Extension): Mounted {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const view = new EditorView({ state: EditorState.create({ doc, extensions }), parent: root, root });
  return { view, destroy: () => view.destroy() };
}
