// Secrets: written here, sent by steps, never shown again.
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { When } from "../../components/Status";
import { Form, Text, text, words } from "./Form";
import { changed, Listed } from "./Listed";

type Secret = Schemas["Secret"];
const PATH = "/secrets";

export function Secrets() {
  const put = (data: FormData) => {
    const value = text(data, "value");
    return api(`${PATH}/${part(text(data, "name"))}`, {
      method: "PUT",
      body: { ...(value ? { value } : {}), hosts: words(data, "hosts") },
    });
  };
  return (
    <Listed<Secret>
      path={PATH}
      title="Secrets"
      about={
        <>
          Steps use them as <code>{"{{secrets.NAME}}"}</code>. Values are stored sealed, never logged, and never shown,
          not even here.
        </>
      }
      none="There are no secrets."
      heads={["Name", "May be sent to", "Versions", "Changed", ""]}
      id={(secret) => secret.id}
      add={{
        label: "Set a secret",
        form: (done) => (
          <Form label="Save" done={done} act={put}>
            <Text name="name" label="Name" required help="An existing name replaces the value." />
            <Text name="value" label="Value" type="password" help="Leave empty to change only the hosts." />
            <Text
              name="hosts"
              label="Hosts it may be sent to"
              help="Such as api.example.com or *.example.org; leave empty for any host."
            />
          </Form>
        ),
      }}
      row={(secret) => (
        <>
          <td>
            <strong>{secret.name}</strong>{" "}
            {!secret.masked && <span className="badge tone-wait">too short to be masked</span>}
          </td>
          <td className="mono">{secret.hosts.length > 0 ? secret.hosts.join(", ") : "anywhere"}</td>
          <td>{secret.version}</td>
          <td>
            <When at={secret.changed_at} /> by {secret.changed_by}
          </td>
          <td>
            <Confirm
              label="Remove"
              title={`Remove ${secret.name}`}
              act={async () => {
                await api(`${PATH}/${part(secret.name)}`, { method: "DELETE" });
                await changed(PATH);
              }}
            >
              <p>Steps that use it will fail.</p>
            </Confirm>
          </td>
        </>
      )}
    />
  );
}
