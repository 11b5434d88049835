// Sizes of panes side by side: shares of one, remembered in this browser. Pure but for the storage.

const KEY = "stepwell.panes.";
/** No pane becomes smaller than this share. */
export const LEAST = 0.12;

/** Moves the border after pane `at` by a share; only the two panes beside it change. */
export function moved(sizes: readonly number[], at: number, by: number): number[] {
  const [before, after] = [sizes[at], sizes[at + 1]];
  if (before === undefined || after === undefined) return [...sizes];
  const most = after - LEAST;
  const least = LEAST - before;
  const step = Math.min(Math.max(by, Math.min(least, 0)), Math.max(most, 0));
  return sizes.map((size, n) => (n === at ? before + step : n === at + 1 ? after - step : size));
}

/** Sizes that add up to one, or undefined if these are not sizes of as many panes. */
export function valid(sizes: unknown, count: number): number[] | undefined {
  if (!Array.isArray(sizes) || sizes.length !== count) return undefined;
  const sum = sizes.reduce((all: number, one) => all + (typeof one === "number" ? one : Number.NaN), 0);
  if (!(sum > 0) || sizes.some((one) => one < LEAST / 2)) return undefined;
  return sizes.map((one) => one / sum);
}

export function remembered(name: string, begin: readonly number[]): number[] {
  try {
    return valid(JSON.parse(localStorage.getItem(KEY + name) ?? "null"), begin.length) ?? [...begin];
  } catch {
    return [...begin];
  }
}

export function rememberSizes(name: string, sizes: readonly number[]): void {
  localStorage.setItem(KEY + name, JSON.stringify(sizes));
}
