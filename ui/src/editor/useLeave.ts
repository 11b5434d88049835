// Asks before a page with unsaved changes is left.

import { useBlocker } from "@tanstack/react-router";

export function useLeave(dirty: boolean): void {
  useBlocker({
    shouldBlockFn: () => dirty && !window.confirm("You have unsaved changes. Leave anyway?"),
    enableBeforeUnload: () => dirty,
    disabled: !dirty,
  });
}
