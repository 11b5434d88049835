// The entries of the command palette and which of them fit what is typed. Pure.
import type { Right } from "./rights";

export interface Command {
  id: string;
  /** `Go to`, `Workflow`, `Run`, `Do`. */
  group: string;
  name: string;
  /** Also searched, and shown small. */
  note?: string;
  to: string;
}

interface Place {
  name: string;
  to: string;
  note?: string;
  right?: Right;
}

export const SETTINGS: Record<string, { name: string; note: string; right?: Right }> = {
  users: { name: "Users", note: "invite sign-in link", right: "admin" },
  roles: { name: "Roles", note: "rights grants", right: "admin" },
  keys: { name: "Keys", note: "API keys, agents" },
  secrets: { name: "Secrets", note: "passwords tokens", right: "admin" },
  connections: { name: "Connections", note: "databases, saved queries", right: "admin" },
  "mcp-servers": { name: "MCP servers", note: "tools" },
  policies: { name: "Policies", note: "approval limits" },
  channels: { name: "Notifications", note: "channels, ntfy, slack, email" },
  plan: { name: "Plan and usage", note: "limits" },
  nodes: { name: "Nodes", note: "cluster" },
  audit: { name: "Audit log", note: "who did what", right: "admin" },
  you: { name: "You", note: "preferences, sessions" },
};

const PLACES: Place[] = [
  { name: "Home", to: "/" },
  { name: "Workflows", to: "/workflows" },
  { name: "Runs", to: "/runs" },
  { name: "Failed runs", to: "/runs?status=failed,timeout" },
  { name: "Approvals", to: "/approvals" },
  { name: "New workflow", to: "/workflows/new", note: "create draw", right: "workflow.define" },
];

/** The parts of the settings that this user may see. */
export function settingsFor(may: (right: Right) => boolean): [string, string][] {
  return Object.entries(SETTINGS).flatMap(([id, { name, right }]) => (!right || may(right) ? [[id, name]] : []));
}

/** The places of the dashboard that this user may see. */
export function places(may: (right: Right) => boolean): Command[] {
  const settings: Place[] = Object.entries(SETTINGS).map(([id, { name, note, right }]) => ({
    name: `Settings: ${name}`,
    to: `/settings/${id}`,
    note,
    ...(right ? { right } : {}),
  }));
  return [...PLACES, ...settings]
    .filter((one) => !one.right || may(one.right))
    .map(({ name, to, note }) => ({ id: to, group: "Go to", name, to, ...(note ? { note } : {}) }));
}

/** The entries that contain every word, best first: names that begin with the text, then names, then notes. */
export function fitting(all: Command[], text: string, most: number): Command[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return all.slice(0, most);
  const words = wanted.split(/\s+/);
  return all
    .map((one) => ({ one, score: score(one, wanted, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ one }) => one);
}

function score(one: Command, wanted: string, words: string[]): number {
  const name = one.name.toLowerCase();
  const all = `${one.group} ${one.name} ${one.note ?? ""}`.toLowerCase();
  if (!words.every((word) => all.includes(word))) return 0;
  if (name === wanted) return 5;
  if (name.startsWith(wanted)) return 4;
  if (name.split(/[\s:._-]+/).some((part) => part.startsWith(wanted))) return 3;
  return words.every((word) => name.includes(word)) ? 2 : 1;
}
