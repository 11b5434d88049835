// MCP servers: their state and tools, and accepting new or changed tools.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { page } from "../../api/client";
import { me } from "../../api/queries";
import { Got } from "../../components/Loading";
import { When } from "../../components/Status";
import { counted, isHeld, type McpServer, nextLook, stateLook, visible } from "../../lib/servers";
import { Accept, PATH, Tool } from "./McpTools";
import { WorkflowTools } from "./WorkflowTools";

const FORM = `mcpServers:
  files:
    command: npx
    args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/documents"]
  tickets:
    url: https://mcp.tickets.example/mcp
    headers: {Authorization: "Bearer {{secrets.TICKETS}}"}`;

export function McpServers() {
  const query = useQuery({
    queryKey: ["settings", PATH],
    queryFn: async () => (await page<McpServer>(PATH)).data,
    staleTime: 0,
    refetchInterval: ({ state }) => nextLook(state.data ?? [], Date.now()),
  });
  const who = useQuery(me);
  const admin = who.data?.grants.includes("admin") ?? false;
  return (
    <>
      <section className="card">
        <div className="card-head">
          <div className="grow">
            <h2>MCP servers</h2>
            <p className="small dim">
              Programs and services whose tools steps can call. A new or changed tool is held until an administrator
              accepts it.
            </p>
          </div>
          <button type="button" disabled={query.isFetching} onClick={() => void query.refetch()}>
            Refresh
          </button>
        </div>
        <Got query={query}>{(all) => (all.length === 0 ? <None /> : null)}</Got>
      </section>
      {query.data?.map((server) => (
        <Server key={server.name} server={server} admin={admin} />
      ))}
      <WorkflowTools />
    </>
  );
}

function None() {
  return (
    <div className="stack">
      <p>There are none. Add them to the server’s configuration, in the format of other MCP clients:</p>
      <pre className="value" tabIndex={0} role="group" aria-label="An example of the configuration">
        {FORM}
      </pre>
      <p>
        Start the server again with it (<code>stepwell serve --config FILE</code>). A step then calls a tool as{" "}
        <code>files__search_files</code>; what a server offers when it is first seen is accepted as it is.
      </p>
    </div>
  );
}

const TRANSPORTS: Record<string, string> = {
  stdio: "a program, on standard input and output",
  http: "a URL, by streamable HTTP",
};

function Server({ server, admin }: { server: McpServer; admin: boolean }) {
  const look = stateLook(server.state);
  const held = server.tools.filter(isHeld);
  // Opens automatically if a tool needs attention, and stays open after it is accepted.
  const [open, setOpen] = useState(false);
  if (held.length > 0 && !open) setOpen(true);
  return (
    <article className="card" aria-label={server.name}>
      <div className="card-head">
        <div className="row wrap">
          <h3>{server.name}</h3>
          <span className={`badge tone-${look.tone}`}>{look.words}</span>
        </div>
        {admin && held.length > 1 && <Accept server={server.name} tools={held} label={`Accept all ${held.length}…`} />}
      </div>
      {server.state === "down" && (
        <p>
          {server.why ? visible(server.why) : "Reason unknown"}.{" "}
          {server.next_attempt_at && (
            <>
              Tried again <When at={server.next_attempt_at} />.
            </>
          )}
        </p>
      )}
      {server.state === "absent" && (
        <p>
          Its tools were accepted earlier, but it is not in the configuration of this node: nothing can be called or
          accepted here.
        </p>
      )}
      <dl className="facts">
        {server.transport && <Fact name="Reached as" value={TRANSPORTS[server.transport] ?? server.transport} />}
        {server.about && <Fact name="Calls itself" value={visible(server.about)} />}
        {server.protocol && <Fact name="Revision" value={server.protocol} />}
      </dl>
      {server.tools.length > 0 ? (
        <details open={open}>
          <summary>{counted(server.tools)}</summary>
          <ul className="plain-list tools">
            {server.tools.map((tool) => (
              <Tool key={tool.tool} server={server.name} tool={tool} admin={admin} />
            ))}
          </ul>
        </details>
      ) : (
        <p className="dim">{server.state === "ready" ? "It offers no tools." : "No tools are known."}</p>
      )}
    </article>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
