// Settings: one page per topic.
import { Link, useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { useTabInView } from "../lib/useTabInView";
import { Audit } from "./settings/Audit";
import { Channels } from "./settings/Channels";
import { Connections } from "./settings/Connections";
import { Keys } from "./settings/Keys";
import { McpServers } from "./settings/McpServers";
import { Nodes } from "./settings/Nodes";
import { Plan } from "./settings/Plan";
import { Policies } from "./settings/Policies";
import { Roles } from "./settings/Roles";
import { Secrets } from "./settings/Secrets";
import { Users } from "./settings/Users";
import { You } from "./settings/You";

const PARTS: Record<string, { name: string; page: ComponentType }> = {
  users: { name: "Users", page: Users },
  roles: { name: "Roles", page: Roles },
  keys: { name: "Keys", page: Keys },
  secrets: { name: "Secrets", page: Secrets },
  connections: { name: "Connections", page: Connections },
  "mcp-servers": { name: "MCP servers", page: McpServers },
  policies: { name: "Policies", page: Policies },
  channels: { name: "Notifications", page: Channels },
  plan: { name: "Plan and usage", page: Plan },
  nodes: { name: "Nodes", page: Nodes },
  audit: { name: "Audit log", page: Audit },
  you: { name: "You", page: You },
};

export default function Settings() {
  const { part } = useParams({ from: "/settings/$part" });
  const shown = PARTS[part];
  const tabs = useTabInView<HTMLElement>(part);
  return (
    <>
      <h1>Settings</h1>
      <nav ref={tabs} className="tabs" aria-label="Settings">
        {Object.entries(PARTS).map(([id, { name }]) => (
          <Link key={id} to="/settings/$part" params={{ part: id }}>
            {name}
          </Link>
        ))}
      </nav>
      {shown ? <shown.page /> : <p>This setting does not exist.</p>}
    </>
  );
}
