// Policies: the organisation's rules for calls, which apply to all workflows.
import { api, part, type Schemas } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { Check, Form, Text, text, words } from "./Form";
import { changed, Listed } from "./Listed";

type Policy = Schemas["Policy"];
const PATH = "/policies";
const EFFECTS = { allow: "allowed", require_approval: "needs approval", deny: "denied" };

export function Policies() {
  const put = (data: FormData) => {
    const [timeout, reason, rate, per, once] = ["timeout", "reason", "rate", "per", "once"].map((name) =>
      text(data, name),
    );
    const body = {
      calls: text(data, "calls"),
      effect: text(data, "effect"),
      approvers: words(data, "approvers"),
      approvals: Number(text(data, "approvals") || "1"),
      allow_self: data.get("allow_self") === "on",
      ...(timeout ? { timeout } : {}),
      ...(once ? { at_most_once: once } : {}),
      ...(reason ? { reason } : {}),
      ...(rate ? { rate: { calls: Number(rate), per: per || "1m" } } : {}),
    };
    return api(`${PATH}/${part(text(data, "name"))}`, { method: "PUT", body });
  };
  return (
    <Listed<Policy>
      path={PATH}
      title="Policies"
      about="Which calls are allowed, need approval, or are denied, in all workflows."
      none="There are no policies: only grants and workflows restrict calls."
      heads={["Name", "Calls", "Effect", "Approval", "At most", "Why", ""]}
      id={(policy) => policy.name}
      add={{
        label: "Set a policy",
        form: (done) => (
          <Form label="Save" done={done} act={put}>
            <Text name="name" label="Name" required />
            <Text
              name="calls"
              label="Calls"
              required
              help="tool:PATTERN, host:PATTERN or connection:PATTERN; * matches anything."
            />
            <label className="field">
              <span className="label">Effect</span>
              <select name="effect" defaultValue="require_approval">
                {Object.entries(EFFECTS).map(([value, name]) => (
                  <option key={value} value={value}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
            <Text
              name="approvers"
              label="Who may approve"
              help="Users or roles. Leave empty for anyone who may approve."
            />
            <Text name="approvals" label="Approvals needed" type="number" initial="1" />
            <Check name="allow_self" label="The user who started the run may approve" initial />
            <Text name="timeout" label="Denied after" help="Such as 4h." />
            <Text name="rate" label="Maximum calls" type="number" />
            <Text name="per" label="Per" help="Such as 1m." />
            <label className="field">
              <span className="label">A call that may already have happened</span>
              <select name="once" defaultValue="">
                <option value="">is made again, as its step defines</option>
                <option value="fail">fails</option>
                <option value="ask">waits until a person reports whether it happened</option>
              </select>
            </label>
            <Text name="reason" label="Reason" help="Shown to users whose calls it stops." />
          </Form>
        ),
      }}
      row={(policy) => (
        <>
          <td>
            <strong>{policy.name}</strong>
          </td>
          <td className="mono">{policy.calls}</td>
          <td>{EFFECTS[policy.effect]}</td>
          <td>
            {policy.effect === "require_approval"
              ? `${policy.approvals} of ${policy.approvers.join(", ") || "anyone who may"}`
              : "–"}
          </td>
          <td>
            {[policy.rate && `${policy.rate.calls} in ${policy.rate.per}`, policy.at_most_once && "once each"]
              .filter(Boolean)
              .join("; ") || "–"}
          </td>
          <td>{policy.reason}</td>
          <td>
            <Confirm
              label="Remove"
              title={`Remove ${policy.name}`}
              act={async () => {
                await api(`${PATH}/${part(policy.name)}`, { method: "DELETE" });
                await changed(PATH);
              }}
            >
              <p>It no longer applies, including to runs in progress.</p>
            </Confirm>
          </td>
        </>
      )}
    />
  );
}
