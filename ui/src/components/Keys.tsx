// The keys of every page: the command palette, the list of keys, and going places. Both dialogs load when first opened.
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { GOES, isTyping, singleKeys } from "../lib/shortcuts";

const Palette = lazy(() => import("./Palette"));
const KeyHelp = lazy(() => import("./KeyHelp"));

/** The second key of a pair must follow within this time. */
const PAIR = 1_200;

type Open = "palette" | "help" | undefined;
let show: (what: Open) => void = () => {};

export function openPalette(): void {
  show("palette");
}

export function openKeyHelp(): void {
  show("help");
}

export function Keys() {
  const [open, setOpen] = useState<Open>();
  const navigate = useNavigate();
  useEffect(() => {
    show = setOpen;
    let went = 0;
    const press = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        return setOpen((before) => (before === "palette" ? undefined : "palette"));
      }
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (isTyping(event) || !singleKeys()) return;
      const goes = performance.now() - went < PAIR ? GOES[event.key] : undefined;
      went = event.key === "g" ? performance.now() : 0;
      if (goes) {
        event.preventDefault();
        return void navigate({ to: goes[0] });
      }
      if (event.key === "?") setOpen("help");
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [navigate]);
  const close = () => setOpen(undefined);
  return (
    <Suspense fallback={null}>
      {open === "palette" && <Palette onClose={close} />}
      {open === "help" && <KeyHelp onClose={close} />}
    </Suspense>
  );
}
