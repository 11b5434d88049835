// Edits a text by paths. Each change becomes replacements that touch nothing else; overlapping replacements wait until
// the earlier ones are applied.

import { cut } from "./cut";
import { insertEntry, insertItem } from "./insert";
import { lineStart, newlineOf, type Splice, splice } from "./splice";
import {
  at,
  child,
  type MapNode,
  type Node,
  ownEntry,
  readTree,
  resolve,
  type Seq,
  sameJson,
  type Tree,
  toJson,
} from "./tree";
import { type Json, type Path, Refused } from "./types";
import { afterKey, inline, keyText, prettyJson, scalarLike } from "./write";

export class Draft {
  private text: string;
  private tree: Tree;
  private pending: Splice[] = [];

  constructor(text: string) {
    this.text = text;
    this.tree = readTree(text);
  }

  get language() {
    return this.tree.language;
  }

  /** The text with all changes applied. */
  result(): string {
    this.flush();
    return this.text;
  }

  /** The tree with all changes applied. */
  read(): Tree {
    this.flush();
    return this.tree;
  }

  node(path: Path): Node | undefined {
    this.flush();
    return at(this.tree.root, path);
  }

  json(path: Path): Json | undefined {
    const node = this.node(path);
    return node && toJson(node);
  }

  root(): Node | null {
    this.flush();
    return this.tree.root;
  }

  /** Sets a value; existing objects and lists are changed only where they differ. */
  set(path: Path, value: Json): void {
    this.flush();
    const before = at(this.tree.root, path);
    if (before && sameJson(toJson(before), value)) return;
    this.add(this.setting(path, value));
  }

  /** Sets one field of many different objects at once. */
  setEach(paths: readonly { path: Path; value: Json }[]): void {
    this.flush();
    for (const { path, value } of paths) {
      const node = this.editable(path);
      this.add(node ? this.rewrite(path, node, value) : this.setting(path, value));
    }
  }

  remove(path: Path): void {
    this.flush();
    const parent = this.parentOf(path);
    const key = path.at(-1) as string | number;
    if (parent?.kind === "seq" && typeof key === "number")
      return this.add(this.cutting(path.slice(0, -1), parent, new Set([key])));
    if (parent?.kind !== "map") return;
    const index = parent.entries.findIndex((entry) => entry.key === key);
    if (index >= 0) {
      this.add(this.cutting(path.slice(0, -1), parent, new Set([index])));
      this.flush();
    }
    // A field that a merge key still provides is overridden with null.
    const left = this.node(path);
    if (left && !(left.kind === "scalar" && left.value === null)) this.set(path, null);
  }

  removeItems(path: Path, indexes: ReadonlySet<number>): void {
    this.flush();
    const list = this.editable(path);
    if (list?.kind === "seq") this.add(this.cutting(path, list, indexes));
  }

  append(path: Path, value: Json): void {
    this.flush();
    const list = this.editable(path);
    if (list?.kind !== "seq") return this.set(path, [value]);
    this.add(insertItem(this.place(path), list, value));
  }

  renameKey(path: Path, name: string): void {
    this.flush();
    const parent = this.parentOf(path);
    const entry = ownEntry(parent, String(path.at(-1)));
    if (!entry) throw new Refused("This name is defined elsewhere in the text: change it there.");
    this.add([{ start: entry.keyStart, end: entry.keyEnd, text: keyText(name, this.language) }]);
  }

  /** Replaces a piece of the current text. */
  replace(pieces: readonly Splice[]): void {
    for (const piece of pieces) this.add([piece]);
  }

  source(start: number, end: number): string {
    this.flush();
    return this.text.slice(start, end);
  }

  private flush(): void {
    if (this.pending.length === 0) return;
    this.text = splice(this.text, this.pending);
    this.pending = [];
    this.tree = readTree(this.text);
  }

  private add(splices: readonly Splice[]): void {
    this.pending.push(...splices.filter((one) => this.text.slice(one.start, one.end) !== one.text));
  }

  /** The node itself; throws if it is defined elsewhere. */
  private editable(path: Path): Node | undefined {
    let node: Node | undefined = this.tree.root ?? undefined;
    for (const key of path) {
      if (node?.kind === "alias") this.refuse(node.name);
      node =
        node?.kind === "map"
          ? ownEntry(node, String(key))?.value
          : node?.kind === "seq"
            ? node.items[Number(key)]
            : undefined;
    }
    if (node?.kind === "alias") this.refuse(node.name);
    return node;
  }

  private refuse(name: string): never {
    throw new Refused(`This is an alias of &${name}, which is defined elsewhere: change it there, or in the text.`);
  }

  private parentOf(path: Path): Node | undefined {
    return this.editable(path.slice(0, -1));
  }

  private place(path: Path): Place {
    const newline = newlineOf(this.text);
    return {
      text: this.text,
      language: this.language,
      newline,
      unit: this.unit(),
      after: this.afterParent(path),
      inFlow: this.inFlow(path),
    };
  }

  /** One step of indentation, as the document has it. */
  private unit(): string {
    const root = this.tree.root;
    if (root?.kind !== "map") return "  ";
    for (const { value } of root.entries) {
      const first =
        value.kind === "map" ? value.entries[0]?.keyStart : value.kind === "seq" ? value.items[0]?.start : undefined;
      if (first === undefined) continue;
      const indent = /^[ \t]+/.exec(this.text.slice(lineStart(this.text, first), first))?.[0];
      if (indent && lineStart(this.text, first) > value.start - indent.length - 2)
        return indent.startsWith("\t") ? "\t" : indent.slice(0, 8);
    }
    return "  ";
  }

  /** Behind the colon or dash that the node at `path` follows. */
  private afterParent(path: Path): number {
    if (path.length === 0) return 0;
    const parent = resolve(at(this.tree.root, path.slice(0, -1)));
    const key = path.at(-1) as string | number;
    if (parent?.kind === "map") {
      const entry = ownEntry(parent, String(key));
      return entry ? this.text.indexOf(":", entry.keyEnd) + 1 : 0;
    }
    const item = parent && child(parent, key);
    return item ? item.start : 0;
  }

  private inFlow(path: Path): boolean {
    let node: Node | undefined = this.tree.root ?? undefined;
    for (const key of path) {
      const here = resolve(node);
      if (here?.kind !== "scalar" && here?.flow) return true;
      node = child(here, key);
    }
    return false;
  }

  private cutting(path: Path, node: MapNode | Seq, indexes: ReadonlySet<number>): Splice[] {
    return cut(this.text, node, indexes, this.afterParent(path));
  }

  private setting(path: Path, value: Json): Splice[] {
    for (let depth = path.length; depth >= 0; depth -= 1) {
      const node = this.editable(path.slice(0, depth));
      if (!node) continue;
      const rest = path.slice(depth);
      if (rest.length === 0) return this.change(path, node, value);
      const key = String(rest[0]);
      const merged = node.kind === "map" ? child(node, key) : undefined;
      const wrapped = within(merged ? toJson(merged) : undefined, rest.slice(1), value);
      if (node.kind === "map") return insertEntry(this.place(path.slice(0, depth)), node, key, wrapped);
      return this.rewrite(path.slice(0, depth), node, within(undefined, rest, value));
    }
    return [];
  }

  private change(path: Path, node: Node, value: Json): Splice[] {
    if (sameJson(toJson(node), value)) return [];
    if (node.kind === "map" && value !== null && typeof value === "object" && !Array.isArray(value)) {
      return this.changeMap(path, node, value);
    }
    if (node.kind === "seq" && Array.isArray(value)) return this.changeList(path, node, value);
    return this.rewrite(path, node, value);
  }

  private changeMap(path: Path, node: MapNode, value: { [key: string]: Json }): Splice[] {
    const names = node.entries.map((entry) => entry.key);
    if (names.includes("<<") || !names.some((name) => name in value)) return this.rewrite(path, node, value);
    for (const name of names) if (name in value) this.settle(() => this.setting([...path, name], value[name] as Json));
    for (const name of names) if (!(name in value)) this.remove([...path, name]);
    for (const name of Object.keys(value)) {
      if (!names.includes(name)) this.settle(() => this.setting([...path, name], value[name] as Json));
    }
    return [];
  }

  private changeList(path: Path, node: Seq, value: Json[]): Splice[] {
    const before = node.items.map((item) => toJson(item));
    const gone = leftOut(before, value);
    if (gone) return this.cutting(path, node, gone);
    for (let n = 0; n < Math.min(before.length, value.length); n += 1)
      this.settle(() => this.setting([...path, n], value[n] as Json));
    for (const item of value.slice(before.length)) this.append(path, item);
    if (before.length > value.length) {
      this.removeItems(path, new Set(before.map((_, n) => n).filter((n) => n >= value.length)));
    }
    return [];
  }

  private settle(make: () => Splice[]): void {
    this.flush();
    this.add(make());
  }

  /** Rewrites a value in place. */
  private rewrite(path: Path, node: Node, value: Json): Splice[] {
    const place = this.place(path);
    const scalar = value === null || typeof value !== "object";
    if (this.language === "json" || place.inFlow) {
      const long = this.language === "json" && !scalar && this.text.slice(node.start, node.end).includes("\n");
      const indent = /^[ \t]*/.exec(this.text.slice(lineStart(this.text, node.start)))?.[0] ?? "";
      const text = long
        ? prettyJson(value, indent, place.unit)
        : node.kind === "scalar"
          ? scalarLike(value, node.style, this.language, true)
          : inline(value, this.language);
      const space =
        node.kind === "scalar" && node.style === "none" && !/\s/.test(this.text[node.start - 1] ?? "") ? " " : "";
      return [{ start: node.start, end: node.end, text: space + text }];
    }
    const oneLine =
      node.kind === "scalar" ? node.style !== "block" && node.style !== "none" : node.kind !== "alias" && node.flow;
    if (oneLine && scalar && !(typeof value === "string" && value.includes("\n"))) {
      return [
        {
          start: node.start,
          end: node.end,
          text: scalarLike(value, node.kind === "scalar" ? node.style : "plain", "yaml", false),
        },
      ];
    }
    if (oneLine && !scalar && node.kind !== "scalar")
      return [{ start: node.start, end: node.end, text: inline(value, "yaml") }];
    if (typeof path.at(-1) === "number" || path.length === 0) {
      return [
        {
          start: node.start,
          end: node.end,
          text: scalar ? scalarLike(value, "plain", "yaml", false) : inline(value, "yaml"),
        },
      ];
    }
    const line = lineStart(this.text, place.after);
    const indent = " ".repeat(keyColumn(this.text, line));
    return [
      {
        start: place.after,
        end: Math.max(node.end, place.after),
        text: afterKey(value, { indent, unit: place.unit, newline: place.newline, short: true }),
      },
    ];
  }
}

/** Context of an insertion. */
export interface Place {
  text: string;
  language: "yaml" | "json";
  newline: string;
  unit: string;
  /** Behind the colon or dash that the collection follows. */
  after: number;
  /** Whether the collection itself is inside braces or brackets. */
  inFlow: boolean;
}

/** The column of the first key of a line, past any dashes. */
export function keyColumn(text: string, line: number): number {
  return /^(\s*(?:-\s+)*)/.exec(text.slice(line, line + 400))?.[1]?.length ?? 0;
}

function within(base: Json | undefined, path: Path, value: Json): Json {
  if (path.length === 0) return value;
  const [key, ...rest] = path;
  const map = base !== null && typeof base === "object" && !Array.isArray(base) ? base : {};
  return { ...map, [String(key)]: within(map[String(key)], rest, value) };
}

/** The positions to take out of `before` to get `after`, if that is all there is to do. */
function leftOut(before: Json[], after: Json[]): Set<number> | null {
  if (after.length >= before.length) return null;
  const gone = new Set<number>();
  let next = 0;
  for (const [n, item] of before.entries()) {
    if (next < after.length && sameJson(item, after[next] as Json)) next += 1;
    else gone.add(n);
  }
  return next === after.length ? gone : null;
}
