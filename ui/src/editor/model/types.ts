// What the editor knows of a definition: its steps and edges as the canvas shows them, and the changes it can make.
// The text stays the truth; everything here is read from it and thrown away again.

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

/** A place on a step from which edges leave. */
export interface Outlet {
  id: string;
  label: string;
  /** What leaves here after a failure or a denial. */
  bad?: boolean;
}

export interface Step {
  /** Its name; for a step in a body, that of the loop, a slash and its own. */
  id: string;
  /** How other steps speak of it. */
  name: string;
  /** What the canvas shows in place of the name, where the dialect has such a thing. */
  label?: string;
  kind: Kind;
  /** The `for_each` whose body it is in. */
  parent?: string;
  /** Where it stands in the document. */
  path: Path;
  /** Where it stands in the text. */
  range: Range;
  /** Its fields as written, whichever object of the node they stand in. */
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
  /** Follows from something else, such as the join of a fork, and cannot be taken away alone. */
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
  start: number;
  end: number;
}

export interface Model {
  language: Language;
  dialect: DialectName | null;
  name: string;
  inputSchema: Json | undefined;
  steps: Step[];
  edges: Edge[];
  /** What keeps the text from being read, or a part of it from being drawn. */
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
