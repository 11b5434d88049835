// The initial text of a new workflow, by dialect.

import type { DialectName } from "./model/types";

export const TEMPLATES: Record<DialectName, string> = {
  tasks: `name: my-workflow
input_schema:
  type: object
  properties:
    name: {type: string}
tasks:
  greet:
    tool: echo
    args: {text: "Hello, {{input.name ?? 'world'}}!"}
`,
  flow: `name: my-workflow
flow:
  start:
    tool: echo
    args: {text: "Hello, {{input.name ?? 'world'}}!"}
`,
  graph: `name: my-workflow
nodes:
  - {id: start, type: start, position: {x: 0, y: 0}}
  - {id: greet, type: tool, position: {x: 0, y: 118}, data: {tool: echo, args: {text: "Hello!"}}}
edges:
  - {source: start, target: greet}
`,
};

export const DIALECT_WORDS: Record<DialectName, { title: string; text: string }> = {
  tasks: {
    title: "Tasks",
    text: "Each step lists what it needs; everything else runs in parallel. The best place to start.",
  },
  flow: { title: "Flow", text: "Each step names the next one: branches, loops, one path after another." },
  graph: { title: "Nodes and edges", text: "A free-form drawing with positions, and handles for errors and branches." },
};
