// Users: who may do what here.

import { useState } from "react";
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { Dialog } from "../../components/Dialog";
import { When } from "../../components/Status";
import { Form, Text, text, words } from "./Form";
import { changed, Listed, useListed } from "./Listed";

type User = Schemas["User"];
type Role = Schemas["Role"];
const PATH = "/users";

export function Users() {
  return (
    <Listed<User>
      path={PATH}
      title="Users"
      about="A user has the grants of all their roles plus their own. Changes take effect at once, also for runs in progress."
      none="There are no users."
      heads={["Name", "Roles", "Grants", "Made", ""]}
      id={(user) => user.id}
      add={{
        label: "Add a user",
        form: (done) => (
          <Form
            label="Add"
            done={done}
            act={(data) =>
              api(PATH, {
                method: "POST",
                body: { name: text(data, "name"), roles: words(data, "roles"), grants: words(data, "grants") },
              })
            }
          >
            <Text name="name" label="Name" required />
            <RolesField initial="viewer" />
            <GrantsField initial="" />
          </Form>
        ),
      }}
      row={(user) => (
        <>
          <td>
            <strong>{user.name}</strong> {user.disabled && <span className="badge tone-bad">disabled</span>}
          </td>
          <td>{user.roles.join(", ")}</td>
          <td className="mono">{user.grants.join(", ")}</td>
          <td>
            <When at={user.created_at} />
          </td>
          <td>
            <Change user={user} />
          </td>
        </>
      )}
    />
  );
}

function RolesField({ initial }: { initial: string }) {
  const roles = useListed<Role>("/roles");
  const names = (roles.data ?? []).map((role) => role.name).join(", ");
  return (
    <Text
      name="roles"
      label="Roles"
      initial={initial}
      help={names ? `Separated by commas. Available: ${names}` : "Separated by commas."}
    />
  );
}

function GrantsField({ initial }: { initial: string }) {
  return (
    <Text
      name="grants"
      label="Additional grants (optional)"
      initial={initial}
      help="Such as workflow.run, tool:mail.*, secret:SMTP_*"
    />
  );
}

function Change({ user }: { user: User }) {
  const [open, setOpen] = useState(false);
  const path = `${PATH}/${part(user.name)}`;
  const done = () => {
    setOpen(false);
    void changed(PATH);
  };
  const disable = async () => {
    if (user.disabled) await api(path, { method: "PATCH", body: { disabled: false } });
    else await api(path, { method: "DELETE" });
    await changed(PATH);
  };
  return (
    <div className="row">
      <button type="button" onClick={() => setOpen(true)} aria-label={`Change ${user.name}`}>
        Change
      </button>
      <Confirm
        label={user.disabled ? "Enable" : "Disable"}
        title={user.disabled ? `Enable ${user.name}` : `Disable ${user.name}`}
        act={disable}
        className={user.disabled ? "" : "danger"}
      >
        <p>
          {user.disabled
            ? "They regain the rights of their roles."
            : "They lose all access, and so does everything that acts as them. Their name stays reserved."}
        </p>
      </Confirm>
      {open && (
        <Dialog title={`Change ${user.name}`} onClose={done}>
          <Form
            label="Save"
            done={done}
            act={(data) =>
              api(path, { method: "PATCH", body: { roles: words(data, "roles"), grants: words(data, "grants") } })
            }
          >
            <RolesField initial={user.roles.join(", ")} />
            <GrantsField initial={user.grants.join(", ")} />
          </Form>
        </Dialog>
      )}
    </div>
  );
}
