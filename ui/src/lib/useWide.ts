// Whether the window has room for panes side by side: two, or three.
import { useSyncExternalStore } from "react";

function watched(width: number): () => boolean {
  const query = matchMedia(`(min-width: ${width}px)`);
  const subscribe = (listener: () => void) => {
    query.addEventListener("change", listener);
    return () => query.removeEventListener("change", listener);
  };
  return () => useSyncExternalStore(subscribe, () => query.matches);
}

export const useWide = watched(1080);
export const useVeryWide = watched(1600);
