// Notification channels, and the delivery of recent messages.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { Status, When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Check, Form, Text, text } from "./Form";
import { changed, Listed } from "./Listed";
import { Once } from "./Once";
import { CHANNELS, type Channel, Preferences, TOPICS } from "./Preferences";

type Notification = Schemas["Notification"];

const MEDIA = ["email", "slack", "webhook", "ntfy", "pushover"];
export function Channels() {
  return (
    <>
      <Listed<Channel>
        path={CHANNELS}
        title="Notification channels"
        about="Where notifications of approvals and failures go: channels of users, or of the organisation."
        none="There are no channels: people find what is waiting for them on the Approvals page."
        heads={["Name", "By", "To", "Owner", "Events", ""]}
        id={(one) => one.id}
        add={{ label: "Add a channel", form: (done) => <Add done={done} /> }}
        row={(one) => (
          <>
            <td>
              <strong>{one.name}</strong>
            </td>
            <td>{one.medium}</td>
            <td className="mono">{one.target}</td>
            <td>{one.organisation ? "the organisation’s" : (one.user ?? "")}</td>
            <td>{one.events.map((event) => TOPICS[event]).join("; ")}</td>
            <td>
              <Test channel={one} />
            </td>
          </>
        )}
      />
      <Preferences />
      <Listed<Notification>
        path="/notifications"
        title="Messages"
        about="Recent messages and their delivery."
        none="Nothing has been sent yet."
        heads={["When", "Channel", "Message", "Status", "Attempts", "Why not"]}
        id={(one) => one.id}
        row={(one) => (
          <>
            <td>
              <When at={one.at} />
            </td>
            <td>{one.channel_name}</td>
            <td>{one.title}</td>
            <td>
              <Status status={one.status === "sent" ? "success" : one.status} />
            </td>
            <td>{one.attempts}</td>
            <td>{one.error}</td>
          </>
        )}
      />
    </>
  );
}

function Test({ channel }: { channel: Channel }) {
  const test = useMutation({
    mutationFn: () => api<Schemas["TestResult"]>(`${CHANNELS}/${part(channel.id)}/test`, { method: "POST" }),
  });
  return (
    <div className="row wrap">
      <button type="button" disabled={test.isPending} onClick={() => test.mutate()}>
        Test
      </button>
      <Confirm
        label="Remove"
        title={`Remove ${channel.name}`}
        act={async () => {
          await api(`${CHANNELS}/${part(channel.id)}`, { method: "DELETE" });
          await changed(CHANNELS);
        }}
      >
        <p>No more notifications are sent through it.</p>
      </Confirm>
      {test.data && (
        <span role="status">
          {test.data.arrived ? "It arrived." : `It did not arrive: ${test.data.error ?? "no reason given"}`}
        </span>
      )}
      {test.error && <Trouble error={test.error} />}
    </div>
  );
}

function Add({ done }: { done: () => void }) {
  const [medium, setMedium] = useState("email");
  const [secret, setSecret] = useState<string>();
  if (secret) return <Once label="The signing secret" secret={secret} done={done} />;
  const act = async (data: FormData) => {
    const settings = Object.fromEntries(
      ["url", "token", "user_key", "topic", "to"]
        .map((name) => [name, text(data, name)] as const)
        .filter(([, value]) => value !== ""),
    );
    const events = Object.keys(TOPICS).filter((event) => data.get(event) === "on");
    const body = {
      name: text(data, "name"),
      medium,
      organisation: data.get("organisation") === "on",
      events,
      ...settings,
    };
    const made = await api<Schemas["NewChannel"]>(CHANNELS, { method: "POST", body });
    if (made.secret) setSecret(made.secret);
    else done();
  };
  return (
    <Form label="Add" done={() => undefined} act={act}>
      <Text name="name" label="Name" required />
      <label className="field">
        <span className="label">By</span>
        <select value={medium} onChange={(event) => setMedium(event.target.value)}>
          {MEDIA.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      {medium === "email" && <Text name="to" label="Address" type="email" required />}
      {(medium === "slack" || medium === "webhook") && <Text name="url" label="URL" type="url" required />}
      {medium === "ntfy" && <Text name="topic" label="Topic" required />}
      {(medium === "ntfy" || medium === "pushover") && (
        <Text name="url" label="Server" type="url" help="Leave empty for the public one." />
      )}
      {(medium === "ntfy" || medium === "pushover") && (
        <Text
          name="token"
          label={medium === "ntfy" ? "Access token" : "Application token"}
          type="password"
          help={medium === "ntfy" ? "Only if the topic needs one." : "Leave empty for the server’s own."}
        />
      )}
      {medium === "pushover" && <Text name="user_key" label="User or group key" type="password" required />}
      <fieldset>
        <legend>Notify when</legend>
        {Object.entries(TOPICS).map(([name, label]) => (
          <Check key={name} name={name} label={label} initial={name !== "gate_answered"} />
        ))}
      </fieldset>
      <Check name="organisation" label="For the whole organisation, not only for you" />
    </Form>
  );
}
