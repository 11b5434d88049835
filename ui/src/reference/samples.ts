// Examples of calls in curl, Python and TypeScript, made from the description: with the SDK where it has a method, and with
// plain HTTP where it has none.

interface Media {
  example?: unknown;
}

export interface Operation {
  operationId?: string;
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: { content?: Record<string, Media>; required?: boolean };
  security?: unknown[];
  "x-codeSamples"?: { lang: string; label: string; source: string }[];
}

export interface Description {
  paths: Record<string, Record<string, Operation>>;
}

/** The same call with the SDK for Python and for TypeScript. */
const SDK: Record<string, [string, string]> = {
  triggerWorkflow: [
    'run = stepwell.trigger("hello", {"name": "Ann"})\nprint(run["run_id"])',
    'const run = await stepwell.trigger("hello", { name: "Ann" });\nconsole.log(run.run_id);',
  ],
  putWorkflow: [
    'stepwell.define(open("hello.yaml").read(), name="hello")',
    'await stepwell.define(await readFile("hello.yaml", "utf8"), { name: "hello" });',
  ],
  checkDefinition: [
    'stepwell.check(open("hello.yaml").read())',
    'await stepwell.check(await readFile("hello.yaml", "utf8"));',
  ],
  listWorkflows: [
    'for workflow in stepwell.workflows():\n    print(workflow["name"])',
    "for await (const workflow of stepwell.workflows()) console.log(workflow.name);",
  ],
  getWorkflow: ['stepwell.workflow("hello")', 'await stepwell.workflow("hello");'],
  listRuns: [
    'for run in stepwell.runs(status="failed"):\n    print(run["run_id"])',
    'for await (const run of stepwell.runs({ status: "failed" })) console.log(run.run_id);',
  ],
  getRun: ['stepwell.get("run_…")', 'await stepwell.get("run_…");'],
  streamRun: [
    'for event in stepwell.watch("run_…"):\n    print(event["type"])',
    'for await (const event of stepwell.watch("run_…")) console.log(event.type);',
  ],
  cancelRun: [
    'stepwell.cancel("run_…", reason="wrong order")',
    'await stepwell.cancel("run_…", { reason: "wrong order" });',
  ],
  retryRun: ['stepwell.retry("run_…")', 'await stepwell.retry("run_…");'],
  listApprovals: [
    'for approval in stepwell.approvals():\n    print(approval["asks"]["message"])',
    "for await (const approval of stepwell.approvals()) console.log(approval.asks.message);",
  ],
  approveStep: [
    'stepwell.approve("run_…", "ask", comment="go ahead")',
    'await stepwell.approve("run_…", "ask", { comment: "go ahead" });',
  ],
  denyStep: [
    'stepwell.deny("run_…", "ask", comment="too expensive")',
    'await stepwell.deny("run_…", "ask", { comment: "too expensive" });',
  ],
};

const PYTHON = "from stepwell import Client\n\nstepwell = Client()\n";
const TYPESCRIPT = 'import { Client } from "@stepwell/client";\n\nconst stepwell = await Client.find();\n';

interface Call {
  method: string;
  url: string;
  /** Whether the operation needs a key. */
  keyed: boolean;
  kind: string | undefined;
  body: unknown;
}

/** The body that an example sends, and its type: YAML where it is taken, else JSON. */
function sent(operation: Operation): Pick<Call, "kind" | "body"> {
  const content = operation.requestBody?.content ?? {};
  const found = Object.entries(content).filter(([, media]) => media.example !== undefined);
  const [kind, media] = found.find(([kind]) => kind === "application/yaml") ?? found[0] ?? [];
  if (kind) return { kind, body: media?.example };
  const required = operation.requestBody?.required && content["application/json"];
  return required ? { kind: "application/json", body: {} } : { kind: undefined, body: undefined };
}

function text(call: Call): string {
  return typeof call.body === "string" ? call.body : JSON.stringify(call.body, null, 2);
}

/** A text as one argument of a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function curl(call: Call): string {
  const parts = [`curl ${call.method === "GET" ? "" : `-X ${call.method} `}${quoted(call.url)}`];
  if (call.keyed) parts.push('-H "Authorization: Bearer $STEPWELL_KEY"');
  if (call.kind) parts.push(`-H ${quoted(`Content-Type: ${call.kind}`)}`, `--data-binary ${quoted(text(call))}`);
  return parts.join(" \\\n  ");
}

function python(call: Call): string {
  const lines = ["import os, httpx", "", `answer = httpx.request("${call.method}", "${call.url}",`];
  if (call.keyed || call.kind) {
    const key = call.keyed ? [`"Authorization": f"Bearer {os.environ['STEPWELL_KEY']}"`] : [];
    const kind = call.kind ? [`"Content-Type": "${call.kind}"`] : [];
    lines.push(`    headers={${[...key, ...kind].join(", ")}},`);
  }
  // A JSON text is a Python string in three quotes as it is.
  if (call.kind) lines.push(`    content=r"""${text(call)}""",`);
  return [...lines, ")", "answer.raise_for_status()"].join("\n");
}

function typescript(call: Call): string {
  const headers = [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of the example
    ...(call.keyed ? ["Authorization: `Bearer ${process.env.STEPWELL_KEY}`"] : []),
    ...(call.kind ? [`"Content-Type": "${call.kind}"`] : []),
  ];
  const lines = [`const answer = await fetch("${call.url}", {`, `  method: "${call.method}",`];
  if (headers.length > 0) lines.push(`  headers: { ${headers.join(", ")} },`);
  if (typeof call.body === "string") lines.push(`  body: ${JSON.stringify(call.body)},`);
  else if (call.kind) lines.push(`  body: JSON.stringify(${JSON.stringify(call.body)}),`);
  return [...lines, "});", "if (!answer.ok) throw new Error(await answer.text());"].join("\n");
}

/** Adds the examples to each operation. */
export function withSamples(description: Description, origin: string): Description {
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const keyed = !operation.security || operation.security.length === 0;
      const call = { method: method.toUpperCase(), url: origin + path, keyed, ...sent(operation) };
      const sdk = SDK[operation.operationId ?? ""];
      operation["x-codeSamples"] = [
        { lang: "shell", label: "curl", source: curl(call) },
        { lang: "python", label: "Python", source: sdk ? PYTHON + sdk[0] : python(call) },
        { lang: "typescript", label: "TypeScript", source: sdk ? TYPESCRIPT + sdk[1] : typescript(call) },
      ];
    }
  }
  return description;
}

/** Operations for which an SDK call is shown. */
export const WITH_SDK = Object.keys(SDK);
