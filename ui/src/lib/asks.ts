// Reads the content of an approval defensively: the server resolves it, but the workflow's author chooses its shape.

export interface Call {
  step: string;
  kind: string;
  input: unknown;
  digest: string | undefined;
  /** The template of a call whose arguments are not known yet. */
  about: string | undefined;
  /** Some of its arguments depend on later steps or on the form; the approval does not cover it. */
  unknown: boolean;
  /** JSON pointers to the arguments that are not known yet. */
  unknownParts: string[];
  /** Not shown, and so not covered. */
  tooLarge: boolean;
  /** Of a call that may follow a denial: it may follow an approval as well. */
  alsoIfApproved: boolean;
}

export interface Asks {
  message: string | undefined;
  form: unknown;
  calls: Call[];
  /** There are more calls than listed; the approval does not cover the others. */
  moreCalls: boolean;
  /** The calls that may follow a denial. */
  onDenial: Call[];
  moreOnDenial: boolean;
  /** What happens at the deadline: `approve` or `deny`. */
  onTimeout: string | undefined;
  approvers: string[];
  escalateTo: string[];
  /** Whether the user who started the run may answer. */
  allowSelf: boolean;
  policy: string | undefined;
}

export function readAsks(asks: unknown): Asks {
  const all = record(asks);
  return {
    message: text(all.message),
    form: all.form,
    calls: readCalls(all.calls),
    moreCalls: Boolean(all.more_calls),
    onDenial: readCalls(all.on_denial),
    moreOnDenial: Boolean(all.more_on_denial),
    onTimeout: text(all.on_timeout),
    approvers: names(all.approvers),
    escalateTo: names(all.escalate_to),
    allowSelf: all.allow_self !== false,
    policy: text(all.policy),
  };
}

function readCalls(calls: unknown): Call[] {
  return (Array.isArray(calls) ? calls : []).map((call) => {
    const one = record(call);
    return {
      step: text(one.step) ?? "",
      kind: text(one.kind) ?? "",
      input: one.input,
      digest: text(one.digest),
      about: text(one.tool) ?? text(one.workflow),
      unknown: one.not_yet_known === true,
      unknownParts: names(one.unknown),
      tooLarge: one.too_large_to_show === true,
      alsoIfApproved: one.also_if_approved === true,
    };
  });
}

/** Whether some call contains a secret, which is shown by name. */
export function hasSecrets(calls: Call[]): boolean {
  return calls.some((call) => JSON.stringify(call.input ?? null).includes("{{secrets."));
}

/** What a question counts as at its deadline, if it is not answered. */
export function silence(onTimeout: unknown): string {
  return onTimeout === "approve" ? "counts as approved" : "counts as denied";
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
