// Keyboard shortcuts of the editor. Clipboard keys apply to the canvas only: text fields have their own.

import { type KeyboardEvent, useCallback, useEffect } from "react";
import type { Actions } from "./useActions";
import type { Definition } from "./useDefinition";

export function useKeys(
  definition: Definition,
  actions: Actions,
  save: () => void,
  test: () => void,
): (event: KeyboardEvent) => void {
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
      if (event.key === "s") {
        event.preventDefault();
        save();
      }
      if (event.key === "Enter") {
        event.preventDefault();
        test();
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [save, test]);

  return useCallback(
    (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.shadowRoot) return;
      const held = event.ctrlKey || event.metaKey;
      const act = held
        ? withControl(event, definition, actions)
        : event.key === "Delete" || event.key === "Backspace"
          ? actions.remove
          : undefined;
      if (!act) return;
      event.preventDefault();
      act();
    },
    [actions, definition],
  );
}

function withControl(event: KeyboardEvent, definition: Definition, actions: Actions): (() => void) | undefined {
  switch (event.key.toLowerCase()) {
    case "z":
      return event.shiftKey ? definition.redo : definition.undo;
    case "y":
      return definition.redo;
    case "c":
      return actions.copy;
    case "x":
      return actions.cut;
    case "v":
      return actions.paste;
    case "a":
      return actions.selectAll;
    default:
      return undefined;
  }
}
