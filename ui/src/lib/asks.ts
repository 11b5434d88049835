// Reads the content of an approval defensively: the server resolves it, but the workflow's author chooses its shape.

export interface Call {
  step: string;
  kind: string;
  input: unknown;
  digest: string | undefined;
  /** The template of a call whose arguments are not known yet. */
  about: string | undefined;
  /** Its arguments depend on later steps; the approval does not cover them. */
  unknown: boolean;
  tooLarge: boolean;
}

export interface Asks {
  message: string | undefined;
  form: unknown;
  calls: Call[];
  /** There are more calls than listed; the approval does not cover the others. */
  moreCalls: boolean;
  approvers: string[];
  escalateTo: string[];
  /** Whether the user who started the run may answer. */
  allowSelf: boolean;
  policy: string | undefined;
}

export function readAsks(asks: unknown): Asks {
  const all = record(asks);
  const calls = Array.isArray(all.calls) ? all.calls : [];
  return {
    message: text(all.message),
    form: all.form,
    calls: calls.map((call) => {
      const one = record(call);
      return {
        step: text(one.step) ?? "",
        kind: text(one.kind) ?? "",
        input: one.input,
        digest: text(one.digest),
        about: text(one.tool) ?? text(one.workflow),
        unknown: one.not_yet_known === true,
        tooLarge: one.too_large_to_show === true,
      };
    }),
    moreCalls: all.more_calls === true,
    approvers: names(all.approvers),
    escalateTo: names(all.escalate_to),
    allowSelf: all.allow_self !== false,
    policy: text(all.policy),
  };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function names(value: unknown): string[] {
  if (typeof value === "string" && value !== "") return [value];
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}
