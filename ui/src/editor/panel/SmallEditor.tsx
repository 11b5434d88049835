// A small code field with completion of expressions: templates, conditions, code, values.

import { completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { yaml } from "@codemirror/lang-yaml";
import { Prec } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { look, small } from "../text/look";
import { mount } from "../text/mount";
import { type Known, offers } from "../text/offers";
import type { FieldType } from "./fields";

interface Props {
  label: string;
  value: string;
  type: FieldType;
  step: string;
  disabled: boolean;
  known: () => Known;
  /** Called soon after typing stops, and when the field is left. */
  onCommit: (text: string) => void;
}

const PAUSE = 500;

export function SmallEditor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef(props);
  useEffect(() => {
    now.current = props;
  });
  const { type, label, disabled } = props;

  // Created right after the panel is drawn, so that it opens quickly.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `make` is new on every render; only these need a new editor
  useEffect(() => {
    let done: (() => void) | undefined;
    const soon = setTimeout(() => {
      if (host.current) done = make(host.current);
    }, 0);
    return () => {
      clearTimeout(soon);
      done?.();
    };
  }, [type, label, disabled]);

  const make = (at: HTMLElement): (() => void) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const commit = (text: string) => {
      clearTimeout(timer);
      timer = undefined;
      now.current.onCommit(text);
    };
    const language = type === "javascript" ? [javascript()] : type === "value" ? [yaml()] : [];
    const oneLine = type === "expression" || type === "template" || type === "text";
    const mounted = mount(at, now.current.value, [
      history(),
      ...language,
      EditorView.lineWrapping,
      EditorView.editable.of(!disabled),
      offers({ known: () => now.current.known(), stepAt: () => now.current.step, bare: type === "expression" }),
      look,
      small,
      EditorView.contentAttributes.of({ tabindex: disabled ? "-1" : "0", "aria-label": label }),
      // Enter commits a one-line field, unless suggestions are open.
      ...(oneLine
        ? [
            keymap.of([
              ...completionKeymap,
              {
                key: "Enter",
                run: (editor) => {
                  commit(editor.state.doc.toString());
                  return true;
                },
              },
            ]),
          ]
        : []),
      Prec.low(keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap])),
      EditorView.updateListener.of((update) => {
        if (!update.docChanged || update.transactions.some((one) => one.isUserEvent("outside"))) return;
        clearTimeout(timer);
        timer = setTimeout(() => commit(update.state.doc.toString()), PAUSE);
      }),
      EditorView.domEventHandlers({
        blur: (_, editor) => {
          if (timer !== undefined) commit(editor.state.doc.toString());
        },
      }),
    ]);
    view.current = mounted.view;
    return () => {
      if (timer !== undefined) commit(mounted.view.state.doc.toString());
      mounted.destroy();
      view.current = null;
    };
  };

  // Follows the text, unless the user is typing here.
  useEffect(() => {
    const at = view.current;
    const before = at?.state.doc.toString();
    if (!at || at.hasFocus || before === props.value) return;
    at.dispatch({ changes: { from: 0, to: at.state.doc.length, insert: props.value }, userEvent: "outside" });
  }, [props.value]);

  return <div className="small-editor" ref={host} />;
}
