// Nodes: the processes that execute steps on the same data.
import type { Schemas } from "../../api/client";
import { When } from "../../components/Status";
import { length } from "../../lib/time";
import { Listed } from "./Listed";

export function Nodes() {
  return (
    <Listed<Schemas["Node"]>
      path="/nodes"
      title="Nodes"
      about="The processes that execute steps on the same data: one on a directory, any number on a database."
      none="No process is executing steps."
      heads={["Name", "Version", "Running", "Slots", "Since", "Last seen"]}
      id={(node) => node.id}
      row={(node) => (
        <>
          <td>
            <strong>{node.name}</strong> <code className="dim small">{node.id}</code>
          </td>
          <td>{node.version}</td>
          <td>{node.running.toLocaleString()}</td>
          <td>{node.slots.toLocaleString()}</td>
          <td>
            <When at={node.joined_at} />
          </td>
          <td>{length(node.quiet_ms)} ago</td>
        </>
      )}
    />
  );
}
