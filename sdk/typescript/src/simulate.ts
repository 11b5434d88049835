// A definition on virtual time, without a server, by the binary's `test` command. Needs Node, Deno or Bun.

import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Definition } from "./client.js";
import { StepwellError } from "./problem.js";
import { ENDED, type StepError, type Json } from "./types.js";

/** The definition is refused, or a step needs a result or an answer that was not given. */
export class SimulationFailed extends StepwellError {
  override name = "SimulationFailed";
}

/** How a simulated run ended. */
export interface Simulated {
  status: string;
  output: any;
  error: StepError | null;
  /** The steps that ran, in the order in which they started. */
  path: string[];
  /** Virtual milliseconds from start to end. */
  took: number;
}

export interface SimulateOptions {
  /** The results of calls by step, as in docs/testing.md: `{ send: [{ status: 503 }, { body: { id: 1 } }] }`. */
  calls?: Record<string, Json>;
  /** What arrives at gates and waits by step: `{ ask: "approve" }`. */
  answers?: Record<string, Json>;
  /** Defaults to `STEPWELL_BINARY`, else to `stepwell` on the path. */
  binary?: string;
}

interface Verdict {
  problems: string[];
  run: { status: string; output: Json; error: StepError | null; path: string[]; took_ms: number };
}

/** Runs a definition on virtual time, without a server, and without making a call. */
export async function simulate(
  definition: Definition,
  input: Json = {},
  options: SimulateOptions = {},
): Promise<Simulated> {
  const binary = options.binary ?? (process.env["STEPWELL_BINARY"] || "stepwell");
  const content = { name: "simulation", input, calls: options.calls ?? {}, answers: options.answers ?? {} };
  const home = await mkdtemp(join(tmpdir(), "stepwell-"));
  try {
    const text = typeof definition === "string" ? definition : JSON.stringify(definition);
    // JSON is read as such, so that its faults are those of JSON.
    await writeFile(join(home, text.trimStart().startsWith("{") ? "definition.json" : "definition.yaml"), text);
    let found = await play(binary, home, content);
    const { status, output, error, path, took_ms } = found.run;
    if (ENDED.has(status)) {
      // A case demands a status; this one demands what it found, so that all other problems show.
      found = await play(binary, home, { ...content, expect: { status } });
    }
    if (found.problems.length > 0) {
      throw new SimulationFailed(found.problems.join("\n"));
    }
    return { status, output, error, path, took: took_ms };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function play(binary: string, home: string, content: Json): Promise<Verdict> {
  await writeFile(join(home, "definition.test.json"), JSON.stringify({ cases: [content] }));
  return new Promise((resolve, reject) => {
    execFile(binary, ["test", "--json", "definition.test.json"], { cwd: home }, (error, out, problem) => {
      if (out.trim() !== "") {
        resolve(JSON.parse(out) as Verdict);
      } else if (error !== null && typeof error.code === "string") {
        reject(new StepwellError(`${binary} cannot be started: ${error.message}`));
      } else {
        reject(new SimulationFailed(problem.trim()));
      }
    });
  });
}
