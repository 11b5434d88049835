// Light, dark or the system's theme; remembered in this browser.
import { useSyncExternalStore } from "react";

export type Choice = "system" | "light" | "dark";
const KEY = "stepwell.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function stored(): Choice {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

function apply(): void {
  const choice = stored();
  const dark = choice === "dark" || (choice === "system" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const one of listeners) one();
}

/** Before the first page is drawn, so that nothing flashes. */
export function startTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

export function setTheme(choice: Choice): void {
  if (choice === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, choice);
  apply();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): { choice: Choice; dark: boolean } {
  const shown = useSyncExternalStore(subscribe, () => `${stored()} ${document.documentElement.dataset.theme}`);
  const [choice, is] = shown.split(" ");
  return { choice: choice as Choice, dark: is === "dark" };
}
