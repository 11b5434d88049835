// Completion of expressions in an editor, from what can be read at that position.

import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import type { Json, Model } from "../model/types";
import { expressionBefore, type Suggestion, suggest } from "../suggest/suggest";

export interface Known {
  model: Model;
  outputs: ReadonlyMap<string, Json>;
}

interface Asking {
  known: () => Known;
  /** The step at a position in the text. */
  stepAt: (offset: number) => string | undefined;
  /** Whether the whole text is an expression, without braces. */
  bare: boolean;
}

export function offers(asking: Asking): Extension {
  const source = (context: CompletionContext): CompletionResult | null => {
    const line = context.state.doc.lineAt(context.pos);
    const text = line.text.slice(0, context.pos - line.from);
    const before = asking.bare ? (expressionBefore(text) ?? text) : expressionBefore(text);
    if (before === null) return null;
    const { model, outputs } = asking.known();
    const { length, options } = suggest({ model, step: asking.stepAt(context.pos), before, outputs });
    const starts = length > 0 || /[.({]\s*$/.test(before) || before.trim() === "";
    if (options.length === 0 || (!starts && !context.explicit)) return null;
    return { from: context.pos - length, options: options.map(offer), validFor: /^[\p{L}\p{N}_ -]*$/u };
  };
  return autocompletion({ override: [source], icons: false });
}

function offer(one: Suggestion): Completion {
  const base: Completion = {
    label: one.label,
    type: one.type,
    ...(one.detail === undefined ? {} : { detail: one.detail }),
  };
  const { insert } = one;
  if (insert === undefined) return base;
  const apply = (view: EditorView, _: Completion, from: number, to: number) => {
    // A name in brackets follows without a dot.
    const dot = insert.startsWith("[") && view.state.sliceDoc(from - 1, from) === ".";
    const quoted =
      insert.startsWith("[") && view.state.doc.lineAt(from).text.includes('"') ? insert.replaceAll('"', "'") : insert;
    const start = dot ? from - 1 : from;
    const cursor = start + quoted.length - (quoted.endsWith("()") ? 1 : 0);
    view.dispatch({
      changes: { from: start, to, insert: quoted },
      selection: { anchor: cursor },
      userEvent: "input.complete",
    });
  };
  return { ...base, apply };
}
