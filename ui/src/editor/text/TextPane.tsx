// The definition as text: the one truth, and the one history for both views.

import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Range, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import type { Fault, Language } from "../model/types";
import { sentence, stepAt } from "./faults";
import { look } from "./look";
import { mount } from "./mount";
import { type Known, offers } from "./offers";

export interface TextPaneProps {
  initial: string;
  language: Language;
  faults: readonly Fault[];
  warnings: readonly Fault[];
  /** The position of the selected step. */
  marked: { start: number; end: number } | undefined;
  known: () => Known;
  onView: (view: EditorView | null) => void;
  onChange: (text: string, byHand: boolean) => void;
  /** Called when the cursor moves to another step. */
  onCursor: (step: string | undefined) => void;
}

const mark = StateEffect.define<{ start: number; end: number } | null>();

const marks = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(before, transaction) {
    let set = before.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(mark)) continue;
      const lines: Range<Decoration>[] = [];
      const { doc } = transaction.state;
      if (effect.value && effect.value.start <= doc.length) {
        const last = doc.lineAt(Math.min(effect.value.end, doc.length)).number;
        for (let n = doc.lineAt(effect.value.start).number; n <= last; n += 1)
          lines.push(Decoration.line({ class: "cm-step" }).range(doc.line(n).from));
      }
      set = Decoration.set(lines);
    }
    return set;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const CURSOR_PAUSE = 180;
const languageOf = new Compartment();
const parser = (language: Language) => (language === "json" ? json() : yaml());

export function TextPane(props: TextPaneProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef(props);
  useEffect(() => {
    now.current = props;
  });

  // The editor is created once; later changes are passed to it below.
  useEffect(() => {
    if (!host.current) return;
    const known = () => now.current.known();
    let moved: ReturnType<typeof setTimeout> | undefined;
    const listener = EditorView.updateListener.of((update) => {
      if (update.docChanged) {
        const byHand = !update.transactions.some((one) => one.isUserEvent("canvas"));
        now.current.onChange(update.state.doc.toString(), byHand);
        clearTimeout(moved);
      } else if (update.selectionSet && update.view.hasFocus) {
        // The selection follows the cursor once it stops moving.
        clearTimeout(moved);
        moved = setTimeout(() => {
          if (update.view.hasFocus) now.current.onCursor(stepAt(known().model, update.state.selection.main.head));
        }, CURSOR_PAUSE);
      }
    });
    const { initial, language } = now.current;
    const mounted = mount(host.current, initial, [
      lineNumbers(),
      foldGutter(),
      history(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      EditorState.tabSize.of(2),
      indentUnit.of("  "),
      languageOf.of(parser(language)),
      offers({ known, stepAt: (offset) => stepAt(known().model, offset), bare: false }),
      lintGutter(),
      marks,
      look,
      keymap.of([
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...historyKeymap,
        ...foldKeymap,
        ...lintKeymap,
        ...defaultKeymap,
        indentWithTab,
      ]),
      EditorView.contentAttributes.of({
        tabindex: "0",
        "aria-label": "The definition as text. Escape, then Tab leaves the editor.",
      }),
      listener,
    ]);
    view.current = mounted.view;
    now.current.onView(mounted.view);
    return () => {
      clearTimeout(moved);
      now.current.onView(null);
      mounted.destroy();
    };
  }, []);

  useEffect(
    () => view.current?.dispatch({ effects: languageOf.reconfigure(parser(props.language)) }),
    [props.language],
  );

  useEffect(() => {
    const at = view.current;
    if (!at) return;
    const { length } = at.state.doc;
    const diagnostics = [...props.faults, ...props.warnings]
      .filter((fault) => fault.end > 0)
      .map((fault) => ({
        from: Math.min(fault.start, length),
        to: Math.min(fault.end, length),
        severity: fault.warning ? ("warning" as const) : ("error" as const),
        message: sentence(fault),
      }));
    at.dispatch(setDiagnostics(at.state, diagnostics));
  }, [props.faults, props.warnings]);

  const { marked } = props;
  useEffect(() => {
    view.current?.dispatch({ effects: mark.of(marked ?? null) });
  }, [marked]);

  return <div className="text-host" ref={host} />;
}
