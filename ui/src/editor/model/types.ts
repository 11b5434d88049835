// The editor's model of a definition: its steps and edges as the canvas shows them, and the changes it can make. The
// text is the source of truth; everything here is derived from it.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Path = readonly (string | number)[];
export type Language = "yaml" | "json";
export type DialectName = "tasks" | "flow" | "graph";

/** What a step does, in words that all three dialects share. */
export type Kind =
  | "http"
  | "tool"
  | "javascript"
  | "query"
  | "condition"
  | "sleep"
  | "webhook"
  | "approval"
  | "each"
  | "workflow"
  | "fork"
  | "start"
  | "end"
  | "unknown";

/** A point on a step from which edges leave. */
export interface Outlet {
  id: string;
  label: string;
  /** Whether edges leave here after a failure or a denial. */
  bad?: boolean;
}

export interface Step {
  /** Its name; for a step in a body, that of the loop, a slash and its own. */
  id: string;
  /** How other steps refer to it. */
  name: string;
  /** Shown on the canvas instead of the name, if the dialect has labels. */
  label?: string;
  kind: Kind;
  /** The `for_each` whose body it is in. */
  parent?: string;
  /** Its path in the document. */
  path: Path;
  /** Its position in the text. */
  range: Range;
  /** Its fields as written, from whichever object of the node. */
  fields: Record<string, Json>;
  outlets: Outlet[];
  position?: Point;
  disabled?: boolean;
}

export interface Edge {
  id: string;
  from: string;
  to: string;
  /** The outlet it leaves by. */
  outlet: string;
  label?: string;
  /** Derived from something else, such as the join of a fork; it cannot be removed alone. */
  derived?: boolean;
  range: Range;
}

export interface Range {
  start: number;
  end: number;
}

export interface Point {
  x: number;
  y: number;
}

export interface Fault {
  message: string;
  hint?: string;
  code?: string;
  path?: string;
  /** Valid, but probably not meant. */
  warning?: boolean;
  start: number;
  end: number;
}

export interface Model {
  language: Language;
  dialect: DialectName | null;
  name: string;
  inputSchema: Json | undefined;
  /** The names of its `vars`. */
  vars: string[];
  steps: Step[];
  edges: Edge[];
  /** Faults that prevent reading the text, or drawing a part of it. */
  faults: Fault[];
  /** Whether the canvas may change the text. */
  editable: boolean;
}

export type Change =
  | { type: "addStep"; name: string; kind: Kind; fields?: Record<string, Json>; parent?: string; position?: Point }
  | { type: "removeStep"; step: string }
  | { type: "rename"; step: string; name: string }
  | { type: "setField"; step: string; field: Path; value: Json | undefined }
  | { type: "connect"; from: string; to: string; outlet: string }
  | { type: "disconnect"; edge: string }
  | { type: "move"; steps: { step: string; position: Point }[] }
  | { type: "batch"; changes: Change[] };

/** A change that the text does not allow; the message is for people. */
export class Refused extends Error {}
