// Paths of values in JSON, in the form that templates use: `tasks.charge.body.items[0].id`.

const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function join(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!PLAIN.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path ? `${path}.${key}` : key;
}

/** `{3}` or `[12]`, as a folded value is shown. */
export function size(value: object): string {
  return Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`;
}
