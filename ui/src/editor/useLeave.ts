// Asks before a page with unsaved changes is left.

import { useBlocker } from "@tanstack/react-router";

export function useLeave(dirty: boolean): void {
  useBlocker({
    shouldBlockFn: () => dirty && !window.confirm("What you changed is not saved. Leave all the same?"),
    enableBeforeUnload: () => dirty,
    disabled: !dirty,
  });
}
