// Settings: one page per topic.
import { Link, useParams } from "@tanstack/react-router";
import type { ComponentType } from "react";
import { settingsFor } from "../lib/palette";
import { useMay } from "../lib/rights";
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

const PAGES: Record<string, ComponentType> = {
  users: Users,
  roles: Roles,
  keys: Keys,
  secrets: Secrets,
  connections: Connections,
  "mcp-servers": McpServers,
  policies: Policies,
  channels: Channels,
  plan: Plan,
  nodes: Nodes,
  audit: Audit,
  you: You,
};

export default function Settings() {
  const { part } = useParams({ from: "/settings/$part" });
  const parts = settingsFor(useMay());
  const Page = PAGES[part];
  const isOffered = parts.some(([id]) => id === part);
  const tabs = useTabInView<HTMLElement>(part);
  return (
    <>
      <h1>Settings</h1>
      <nav ref={tabs} className="tabs" aria-label="Settings">
        {parts.map(([id, name]) => (
          <Link key={id} to="/settings/$part" params={{ part: id }}>
            {name}
          </Link>
        ))}
      </nav>
      {!Page && <p>This setting does not exist.</p>}
      {Page && isOffered && <Page />}
      {Page && !isOffered && <p className="note">This setting is for administrators.</p>}
    </>
  );
}
