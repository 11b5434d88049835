// Keeps the open tab in view if the tabs do not fit side by side.
import { type RefObject, useEffect, useRef } from "react";

export function useTabInView<T extends HTMLElement>(open: string): RefObject<T | null> {
  const tabs = useRef<T>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another open tab is the signal
  useEffect(() => {
    const bar = tabs.current;
    const tab = bar?.querySelector<HTMLElement>('[data-state="active"], [data-status="active"]');
    if (bar && tab) bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
  }, [open]);
  return tabs;
}
