// Paths of steps: `charge`, `each[3].charge`, `loop:poll[0].check`. Names hold neither dots nor brackets.

/** The step's path in the graph, without pass or item: `each[].charge`. */
export function pattern(path: string): string {
  return path.replace(/\[\d+\]/g, "[]");
}

/** The enclosing step and the index of the pass or item: `each[3].charge` is in `each`, 3. */
export function holder(path: string): { scope: string; index: number } | undefined {
  const found = /^(.*)\[(\d+)\]\.[^.[\]]*$/.exec(path);
  return found ? { scope: found[1] ?? "", index: Number(found[2]) } : undefined;
}

/** The last part, for display; loops made by a back edge are named after their first step. */
export function shortName(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1).replace(/^loop:/, "");
}
