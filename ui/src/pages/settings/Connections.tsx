// Connections: databases that query steps may use. Their addresses are written and never shown.
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { When } from "../../components/Status";
import { Check, Form, Text, text } from "./Form";
import { changed, Listed } from "./Listed";
import { Queries } from "./Queries";

type Connection = Schemas["Connection"];
const PATH = "/connections";

export function Connections() {
  return (
    <>
      <Databases />
      <Queries />
    </>
  );
}

function Databases() {
  const put = (data: FormData) => {
    const [url, rows, timeout] = [text(data, "url"), text(data, "rows"), text(data, "timeout")];
    const body = {
      write: data.get("write") === "on",
      ...(url ? { url } : {}),
      ...(rows ? { rows: Number(rows) } : {}),
      ...(timeout ? { timeout_ms: Number(timeout) } : {}),
    };
    return api(`${PATH}/${part(text(data, "name"))}`, { method: "PUT", body });
  };
  return (
    <Listed<Connection>
      path={PATH}
      title="Connections"
      about="Databases for query steps. Addresses are stored sealed and never shown."
      none="There are no connections."
      heads={["Name", "Where", "May write", "Most rows", "Changed", ""]}
      id={(one) => one.id}
      add={{
        label: "Set a connection",
        form: (done) => (
          <Form label="Save" done={done} act={put}>
            <Text name="name" label="Name" required />
            <Text
              name="url"
              label="Address"
              type="password"
              help="postgres://… or sqlite:/path, with {{secrets.NAME}} if needed. Leave empty to keep the current one."
            />
            <Text name="rows" label="Maximum rows" type="number" help="Leave empty for the server’s limit." />
            <Text
              name="timeout"
              label="Statement timeout in milliseconds"
              type="number"
              help="Leave empty for the server’s limit."
            />
            <Check name="write" label="Statements may write" />
          </Form>
        ),
      }}
      row={(one) => (
        <>
          <td>
            <strong>{one.name}</strong>
          </td>
          <td className="mono">
            {one.scheme} {one.host ?? ""} {one.database}
          </td>
          <td>{one.write ? "yes" : "no"}</td>
          <td>{one.rows ?? "–"}</td>
          <td>
            <When at={one.changed_at} /> by {one.changed_by}
          </td>
          <td>
            <Confirm
              label="Remove"
              title={`Remove ${one.name}`}
              act={async () => {
                await api(`${PATH}/${part(one.name)}`, { method: "DELETE" });
                await changed(PATH);
              }}
            >
              <p>Query steps that use it will fail.</p>
            </Confirm>
          </td>
        </>
      )}
    />
  );
}
