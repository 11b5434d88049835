// Saved queries: statements under a name, which query steps use.
import { useState } from "react";
import { api, Problem, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { Dialog } from "../../components/Dialog";
import { When } from "../../components/Status";
import { Area, Check, Form, Text, text } from "./Form";
import { changed, Listed, useListed } from "./Listed";

type Saved = Schemas["Query"];
const PATH = "/queries";

export function Queries() {
  return (
    <Listed<Saved>
      path={PATH}
      title="Saved queries"
      about="Statements that query steps use by name. A change takes effect with the next step."
      none="There are no saved queries: query steps contain their own statements."
      heads={["Name", "Connection", "Statement", "Writes", "Most rows", "Changed", ""]}
      id={(one) => one.id}
      add={{ label: "Save a query", form: (done) => <Fields done={done} /> }}
      row={(one) => (
        <>
          <td>
            <strong>{one.name}</strong>
          </td>
          <td>{one.connection}</td>
          <td className="mono">{one.sql}</td>
          <td>{one.write ? "yes" : "no"}</td>
          <td>{one.rows ?? "–"}</td>
          <td>
            <When at={one.changed_at} /> by {one.changed_by}
          </td>
          <td>
            <Change saved={one} />
          </td>
        </>
      )}
    />
  );
}

function Change({ saved }: { saved: Saved }) {
  const [open, setOpen] = useState(false);
  const done = () => {
    setOpen(false);
    void changed(PATH);
  };
  return (
    <div className="row">
      <button type="button" onClick={() => setOpen(true)} aria-label={`Change ${saved.name}`}>
        Change
      </button>
      <Confirm
        label="Remove"
        title={`Remove ${saved.name}`}
        act={async () => {
          await api(`${PATH}/${part(saved.name)}`, { method: "DELETE" });
          await changed(PATH);
        }}
      >
        <p>Query steps that use it will fail.</p>
      </Confirm>
      {open && (
        <Dialog title={`Change ${saved.name}`} onClose={done}>
          <Fields saved={saved} done={done} />
        </Dialog>
      )}
    </div>
  );
}

function Fields({ saved, done }: { saved?: Saved; done: () => void }) {
  const connections = useListed<Schemas["Connection"]>("/connections");
  const names = (connections.data ?? []).map((one) => one.name).join(", ");
  const put = async (data: FormData) => {
    const rows = text(data, "rows");
    const body = {
      connection: text(data, "connection"),
      sql: text(data, "sql"),
      params: params(text(data, "params")),
      write: data.get("write") === "on",
      ...(rows ? { rows: Number(rows) } : {}),
    };
    await api(`${PATH}/${part(text(data, "name"))}`, { method: "PUT", body });
  };
  const given = saved && Object.keys(saved.params).length > 0 ? JSON.stringify(saved.params) : "";
  return (
    <Form label="Save" done={done} act={put}>
      <Text name="name" label="Name" initial={saved?.name ?? ""} disabled={saved !== undefined} required />
      <Text
        name="connection"
        label="Connection"
        initial={saved?.connection ?? ""}
        help={names ? `Available: ${names}` : ""}
        required
      />
      <Area
        name="sql"
        label="Statement"
        initial={saved?.sql ?? ""}
        help="One statement, with :name or $1 for parameters."
      />
      <Text
        name="params"
        label="Default parameters (optional)"
        initial={given}
        help={'An object, as JSON: {"day": "2026-01-01"}'}
      />
      <Text
        name="rows"
        label="Maximum rows"
        type="number"
        initial={saved?.rows?.toString() ?? ""}
        help="Leave empty for the connection’s limit."
      />
      <Check name="write" label="Writes data" initial={saved?.write ?? false} />
    </Form>
  );
}

function params(written: string): Record<string, unknown> {
  if (!written) return {};
  try {
    const value: unknown = JSON.parse(written);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Reported below, with a more helpful message.
  }
  throw new Problem({
    status: 422,
    code: "bad-values",
    detail: 'The parameters must be a JSON object, such as {"day": "2026-01-01"}.',
  });
}
