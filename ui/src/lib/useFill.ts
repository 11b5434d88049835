// Makes an element reach from where it starts to the end of the window.
import { type RefObject, useLayoutEffect, useRef } from "react";

const MARGIN = 20;

export function useFill(least: number): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const top = element.getBoundingClientRect().top + window.scrollY;
      element.style.height = `${Math.max(Math.floor(window.innerHeight - top - MARGIN), least)}px`;
    };
    measure();
    // What stands above grows and shrinks with the run.
    const observer = new ResizeObserver(measure);
    for (const one of element.parentElement?.parentElement?.children ?? []) observer.observe(one);
    window.addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    };
  }, [least]);
  return ref;
}
