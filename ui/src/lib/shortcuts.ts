// Keys that work on every page. Single keys can be switched off, for people whose input device types by accident.
const KEY = "stepwell.single-keys";

export const GOES: Record<string, [string, string]> = {
  h: ["/", "Home"],
  w: ["/workflows", "Workflows"],
  r: ["/runs", "Runs"],
  a: ["/approvals", "Approvals"],
  s: ["/settings", "Settings"],
};

export function singleKeys(): boolean {
  return localStorage.getItem(KEY) !== "off";
}

export function setSingleKeys(on: boolean): void {
  if (on) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, "off");
}

/** Whether the event belongs to a field, an editor of text, or a dialog. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return (
    /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable || target.closest("dialog") !== null
  );
}
