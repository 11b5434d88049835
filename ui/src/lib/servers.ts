// The state of MCP servers and their tools in words, and their texts with invisible characters made visible.
import type { Schemas } from "../api/client";
import type { Tone } from "./status";

export type McpServer = Schemas["McpServer"];
export type McpTool = Schemas["McpTool"];
export type WorkflowTool = Schemas["WorkflowTool"];

export interface Look {
  tone: Tone;
  words: string;
}

const STATES: Record<string, Look> = {
  ready: { tone: "good", words: "✓ ready" },
  connecting: { tone: "busy", words: "▸ connecting" },
  down: { tone: "bad", words: "✕ down" },
  absent: { tone: "idle", words: "○ not configured on this node" },
};

const STANDINGS: Record<string, Look> = {
  accepted: { tone: "good", words: "✓ accepted" },
  changed: { tone: "bad", words: "✕ changed, held" },
  new: { tone: "wait", words: "◷ new, held" },
  unreviewed: { tone: "wait", words: "◷ unreviewed, held" },
  refused: { tone: "bad", words: "✕ refused, held" },
  held: { tone: "bad", words: "✕ cannot be called" },
  missing: { tone: "idle", words: "○ not offered now" },
};

export function stateLook(state: string): Look {
  return STATES[state] ?? { tone: "idle", words: state };
}

export function standingLook(standing: string): Look {
  return STANDINGS[standing] ?? { tone: "idle", words: standing };
}

/** Whether the tool is offered but not callable until it is accepted. */
export function isHeld(tool: McpTool): boolean {
  return tool.standing === "changed" || tool.standing === "new";
}

/** `3 tools: 1 changed, 2 accepted`, with what needs attention first. */
export function counted(tools: McpTool[]): string {
  const counts = ["changed", "new", "held", "missing", "accepted"].flatMap((standing) => {
    const count = tools.filter((tool) => tool.standing === standing).length;
    return count > 0 ? [`${count} ${standing === "missing" ? "not offered now" : standing}`] : [];
  });
  return `${tools.length} ${tools.length === 1 ? "tool" : "tools"}${counts.length > 0 ? `: ${counts.join(", ")}` : ""}`;
}

/** The server stores this many characters of an accepted description. */
const KEPT = 2_000;

/** Compares a tool's description with the accepted one; only the start of a long text can be compared. */
export function sayingNow(tool: McpTool): "same" | "begins the same" | "different" {
  const [now, before] = [tool.description ?? "", tool.accepted_description ?? ""];
  if ([...before].length < KEPT) return now === before ? "same" : "different";
  return now.startsWith(before) ? "begins the same" : "different";
}

/** Accepts only what was shown: each tool is sent with the digest that was displayed. */
export function acceptance(tools: McpTool[]): Schemas["AcceptRequest"] {
  return { tools: tools.map(({ tool, digest }) => ({ tool, digest: digest ?? null })) };
}

/** When to poll again, because no event reports the state; false if no server is about to change state. */
export function nextLook(servers: McpServer[], now: number): number | false {
  const waits = servers.flatMap((server) => {
    if (server.state === "connecting") return [2_000];
    if (server.state !== "down") return [];
    const next = Date.parse(server.next_attempt_at ?? "");
    return [Math.max((Number.isNaN(next) ? 0 : next - now) + 500, 2_000)];
  });
  return waits.length > 0 ? Math.min(...waits) : false;
}

// Zero-width and direction characters: a model reads them, a person does not see them.
// biome-ignore lint/suspicious/noMisleadingCharacterClass: each code point is meant alone
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\u{115F}\u{1160}\u{3164}\u{FE00}-\u{FE0E}\u{E0100}-\u{E01EF}]/gu;

/** The text with a mark for each invisible character. */
export function visible(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(UNSEEN, (one) => `⟨U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
