// The definition being edited: its text, the model read from it, and the one way to change it from the canvas. The text
// editor owns the text and the history; everything else is derived.

import { isolateHistory, redo, redoDepth, undo, undoDepth } from "@codemirror/commands";
import { Transaction } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { useCallback, useMemo, useRef, useState } from "react";
import { apply, parse } from "./model/model";
import { difference } from "./model/splice";
import { type Change, type Model, Refused } from "./model/types";

/** While the user types, the canvas updates after this pause; longer for larger texts. */
const PAUSE = 160;
const PAUSE_PER_CHARACTER = 0.01;

export interface Definition {
  text: string;
  model: Model;
  /** The last model that could be drawn, shown while the text is broken. */
  drawn: Model;
  canUndo: boolean;
  canRedo: boolean;
  /** Applies a change. Returns false and sets `refusal` if that is not possible. */
  change: (change: Change) => boolean;
  refusal: string | null;
  forget: () => void;
  undo: () => void;
  redo: () => void;
  /** Replaces the whole text as one change. */
  replace: (text: string) => void;
  /** The current text. */
  current: () => string;
  onView: (view: EditorView | null) => void;
  onChange: (text: string, byHand: boolean) => void;
  view: () => EditorView | null;
}

export function useDefinition(initial: string): Definition {
  const [text, setText] = useState(initial);
  const [depths, setDepths] = useState({ undo: 0, redo: 0 });
  const [refusal, setRefusal] = useState<string | null>(null);
  const view = useRef<EditorView | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const model = useMemo(() => parse(text), [text]);
  const [drawn, setDrawn] = useState(model);
  if (model !== drawn && (model.editable || drawn.steps.length === 0)) setDrawn(model);

  const onView = useCallback((at: EditorView | null) => {
    view.current = at;
  }, []);

  const onChange = useCallback((next: string, byHand: boolean) => {
    const settle = () => {
      setText(next);
      setRefusal(null);
      const state = view.current?.state;
      if (state) setDepths({ undo: undoDepth(state), redo: redoDepth(state) });
    };
    clearTimeout(timer.current);
    if (byHand) timer.current = setTimeout(settle, PAUSE + next.length * PAUSE_PER_CHARACTER);
    else settle();
  }, []);

  const current = useCallback(() => view.current?.state.doc.toString() ?? initial, [initial]);

  const put = useCallback((before: string, after: string) => {
    const one = difference(before, after);
    if (!one || !view.current) return;
    view.current.dispatch({
      changes: { from: one.start, to: one.end, insert: one.text },
      annotations: [isolateHistory.of("full"), Transaction.userEvent.of("canvas")],
      effects: [],
    });
  }, []);

  const change = useCallback(
    (wanted: Change): boolean => {
      try {
        const before = current();
        put(before, apply(before, wanted));
        setRefusal(null);
        return true;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        setRefusal(error.message);
        return false;
      }
    },
    [current, put],
  );

  return {
    text,
    model,
    drawn,
    canUndo: depths.undo > 0,
    canRedo: depths.redo > 0,
    change,
    refusal,
    forget: useCallback(() => setRefusal(null), []),
    undo: useCallback(() => void (view.current && undo(view.current)), []),
    redo: useCallback(() => void (view.current && redo(view.current)), []),
    replace: useCallback((next: string) => put(current(), next), [current, put]),
    current,
    onView,
    onChange,
    view: useCallback(() => view.current, []),
  };
}
