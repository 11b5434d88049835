// Roles: named sets of grants.
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { Form, Text, text, words } from "./Form";
import { changed, Listed } from "./Listed";

type Role = Schemas["Role"];
const PATH = "/roles";

export function Roles() {
  const put = (name: string, grants: string[]) => api(`${PATH}/${part(name)}`, { method: "PUT", body: { grants } });
  return (
    <Listed<Role>
      path={PATH}
      title="Roles"
      about="A role is a named set of grants. Built-in roles cannot be changed."
      none="There are no roles."
      heads={["Name", "Grants", ""]}
      id={(role) => role.name}
      add={{
        label: "Add or change a role",
        form: (done) => (
          <Form label="Save" done={done} act={(data) => put(text(data, "name"), words(data, "grants"))}>
            <Text name="name" label="Name" required help="An existing name replaces its grants." />
            <Text
              name="grants"
              label="Grants"
              required
              help="workflow.read, workflow.define, workflow.run, workflow.approve, tool:…, connection:…, secret:…, admin"
            />
          </Form>
        ),
      }}
      row={(role) => (
        <>
          <td>
            <strong>{role.name}</strong>
          </td>
          <td className="mono">{role.grants.join(", ")}</td>
          <td>
            {role.built_in ? (
              <span className="tag">built in</span>
            ) : (
              <Confirm
                label="Remove"
                title={`Remove ${role.name}`}
                act={async () => {
                  await api(`${PATH}/${part(role.name)}`, { method: "DELETE" });
                  await changed(PATH);
                }}
              >
                <p>This is refused while a user has the role.</p>
              </Confirm>
            )}
          </td>
        </>
      )}
    />
  );
}
