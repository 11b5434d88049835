// Paths of steps: `charge`, `each[3].charge`, `loop:poll[0].check`. Names hold neither dots nor brackets.

/** As the graph names the step, whichever pass or item it belongs to: `each[].charge`. */
export function pattern(path: string): string {
  return path.replace(/\[\d+\]/g, "[]");
}

/** The step that holds it and which of its passes or items: `each[3].charge` is in `each`, 3. */
export function holder(path: string): { scope: string; index: number } | undefined {
  const found = /^(.*)\[(\d+)\]\.[^.[\]]*$/.exec(path);
  return found ? { scope: found[1] ?? "", index: Number(found[2]) } : undefined;
}

/** The last part, as people call it; loops made of a way back are named after their first step. */
export function shortName(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1).replace(/^loop:/, "");
}
