// Keys: how programs authenticate. A new key is shown once.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { When } from "../../components/Status";
import { Toggle } from "../../components/Toggle";
import { Trouble } from "../../components/Trouble";
import { Check, Form, Text, text, words } from "./Form";
import { changed, Listed } from "./Listed";
import { Once } from "./Once";

type Key = Schemas["Key"];
type NewKey = Schemas["NewKey"];
const PATH = "/keys";

export function Keys() {
  return (
    <Listed<Key>
      path={PATH}
      title="Keys"
      about="Programs authenticate with keys. A key has the rights of its user, or fewer. Agent keys never administer, and answer approvals only if their grants list it by name."
      none="There are no keys."
      heads={["Name", "User", "Leaves", "Last used", "Ends", "Works", ""]}
      id={(key) => key.id}
      add={{ label: "Create a key", form: (done) => <Make done={done} /> }}
      row={(key) => (
        <>
          <td>
            <strong>{key.name || "unnamed"}</strong> <code className="dim">{key.start}…</code>{" "}
            {key.agent && <span className="tag">agent</span>}
          </td>
          <td>{key.user}</td>
          <td className="mono">{key.grants ? key.grants.join(", ") : "all"}</td>
          <td>
            <When at={key.last_used_at} />
          </td>
          <td>
            <When at={key.expires_at} />
          </td>
          {key.revoked_at ? (
            <td colSpan={2}>
              <span className="badge tone-bad">revoked</span>
            </td>
          ) : (
            <>
              <td>
                <Pause keyView={key} />
              </td>
              <td>
                <Confirm
                  label="Revoke"
                  title={`Revoke ${key.name || key.start}`}
                  act={async () => {
                    await api(`${PATH}/${part(key.id)}`, { method: "DELETE" });
                    await changed(PATH);
                  }}
                >
                  <p>It stops working permanently. Runs it started continue.</p>
                </Confirm>
              </td>
            </>
          )}
        </>
      )}
    />
  );
}

function Pause({ keyView }: { keyView: Key }) {
  const act = useMutation({
    mutationFn: (paused: boolean) => api(`${PATH}/${part(keyView.id)}`, { method: "PATCH", body: { paused } }),
    onSettled: () => changed(PATH),
  });
  return (
    <>
      <Toggle
        label={`${keyView.name || keyView.start} works`}
        on={!keyView.paused}
        disabled={act.isPending}
        onChange={(on) => act.mutate(!on)}
      />
      {act.error && <Trouble error={act.error} />}
    </>
  );
}

function Make({ done }: { done: () => void }) {
  const [made, setMade] = useState<NewKey>();
  if (made) return <Once label="The key" secret={made.key} done={done} />;
  const act = async (data: FormData) => {
    const [grants, user, ends] = [words(data, "grants"), text(data, "user"), text(data, "ends")];
    const body = {
      name: text(data, "name"),
      agent: data.get("agent") === "on",
      ...(user ? { user } : {}),
      ...(grants.length > 0 ? { grants } : {}),
      ...(ends ? { expires_at: new Date(ends).toISOString() } : {}),
    };
    setMade(await api<NewKey>(PATH, { method: "POST", body }));
  };
  return (
    <Form label="Create" done={() => undefined} act={act}>
      <Text name="name" label="Name" required help="What it is for, such as laptop or build server." />
      <Text name="user" label="User" help="Leave empty for yourself." />
      <Text name="grants" label="Grants" help="Restricts the key to these of its user’s grants. Leave empty for all." />
      <Text name="ends" label="Expires" type="datetime-local" help="Leave empty for no expiry." />
      <Check name="agent" label="For an agent: a program that makes its own decisions" />
    </Form>
  );
}
