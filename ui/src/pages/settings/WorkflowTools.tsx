// Workflows that are exposed as tools.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { page } from "../../api/client";
import { standingLook, visible, type WorkflowTool } from "../../lib/servers";

const PATH = "/tools";

export function WorkflowTools() {
  const query = useQuery({
    queryKey: ["settings", PATH],
    queryFn: async () => (await page<WorkflowTool>(PATH)).data,
    staleTime: 0,
  });
  if (!query.data || query.data.length === 0) return null;
  return (
    <section className="card" aria-label="Workflows as tools">
      <div className="card-head">
        <div className="grow">
          <h2>Workflows as tools</h2>
          <p className="small dim">
            Agents can call these by name. A version that an agent defined is held until a person accepts it under{" "}
            <Link to="/approvals">Approvals</Link>.
          </p>
        </div>
      </div>
      <ul className="plain-list tools">
        {query.data.map((tool) => (
          <Item key={tool.workflow_id} tool={tool} />
        ))}
      </ul>
    </section>
  );
}

function Item({ tool }: { tool: WorkflowTool }) {
  const look = standingLook(tool.standing);
  return (
    <li className="stack tool" aria-label={tool.name}>
      <div className="row wrap between">
        <div className="row wrap">
          <strong className="mono digest">{tool.name}</strong>
          <Link to="/workflows/$name" params={{ name: tool.workflow }}>
            {visible(tool.workflow)}, version {tool.version}
          </Link>
          <span className={`badge tone-${look.tone}`}>{look.words}</span>
        </div>
      </div>
      <p className="says">{tool.description ? visible(tool.description) : "It has no description."}</p>
      <p className="small dim">Defined by {visible(tool.defined_by)}.</p>
      {tool.why && <p>{visible(tool.why)}</p>}
    </li>
  );
}
