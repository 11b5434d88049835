// Workflows that are exposed as tools, and accepting those that an agent defined.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, page, part } from "../../api/client";
import { Trouble } from "../../components/Trouble";
import { standingLook, visible, type WorkflowTool } from "../../lib/servers";
import { changed } from "./Listed";

const PATH = "/tools";

export function WorkflowTools({ may }: { may: boolean }) {
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
            Agents can call these by name. A version that an agent defined is held until a person accepts it.
          </p>
        </div>
      </div>
      <ul className="plain-list tools">
        {query.data.map((tool) => (
          <Item key={tool.workflow_id} tool={tool} may={may} />
        ))}
      </ul>
    </section>
  );
}

function Item({ tool, may }: { tool: WorkflowTool; may: boolean }) {
  const look = standingLook(tool.standing);
  const held = tool.standing === "new" || tool.standing === "changed";
  const accept = useMutation({
    // Exactly the version that is shown.
    mutationFn: () =>
      api(`/workflows/${part(tool.workflow_id)}/accept-tool`, { method: "POST", body: { version: tool.version } }),
    onSettled: () => changed(PATH),
  });
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
        {held && may && (
          <button type="button" disabled={accept.isPending} onClick={() => accept.mutate()}>
            Accept version {tool.version}
          </button>
        )}
      </div>
      <p className="says">{tool.description ? visible(tool.description) : "It has no description."}</p>
      <p className="small dim">Defined by {visible(tool.defined_by)}.</p>
      {tool.why && <p>{visible(tool.why)}</p>}
      {accept.error && <Trouble error={accept.error} />}
    </li>
  );
}
