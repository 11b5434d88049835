// Whether the window is wide enough for panes side by side.
import { useSyncExternalStore } from "react";

const wide = matchMedia("(min-width: 1080px)");

function subscribe(listener: () => void): () => void {
  wide.addEventListener("change", listener);
  return () => wide.removeEventListener("change", listener);
}

export function useWide(): boolean {
  return useSyncExternalStore(subscribe, () => wide.matches);
}
