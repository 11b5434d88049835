// Makes an element reach from where it starts to the end of the window.
import { type RefObject, useLayoutEffect, useRef } from "react";

const MARGIN = 20;

/** At least this high, and with this much room left below. */
export function useFill(least: number, margin = MARGIN): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null);
  const measure = useRef(() => {});
  measure.current = () => {
    const element = ref.current;
    if (!element) return;
    const top = element.getBoundingClientRect().top + window.scrollY;
    element.style.height = `${Math.max(Math.floor(window.innerHeight - top - margin), least)}px`;
  };
  // What stands above comes and goes with what is shown.
  useLayoutEffect(() => measure.current());
  useLayoutEffect(() => {
    const again = () => measure.current();
    const observer = new ResizeObserver(again);
    for (const one of document.getElementById("content")?.children ?? []) observer.observe(one);
    window.addEventListener("resize", again);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", again);
    };
  }, []);
  return ref;
}
