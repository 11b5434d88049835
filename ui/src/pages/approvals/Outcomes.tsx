// What an approval leads to and what a denial does, side by side, in words and values.
import { useState } from "react";
import type { Approval } from "../../api/queries";
import { Value } from "../../components/Value";
import { ifApproved, ifDenied } from "../../lib/approvals";
import { type Asks, type Call, hasSecrets } from "../../lib/asks";
import { SHOWN_VALUES, sentence, values } from "../../lib/calls";

/** Calls that are listed at once. */
const SHOWN = 5;

export function Outcomes({ asked, asks }: { asked: Approval; asks: Asks }) {
  return (
    <>
      <div className="outcomes">
        <section className="outcome outcome-good">
          <h3>
            <span aria-hidden="true">✓</span> If it is approved
          </h3>
          <p>{ifApproved(asked, asks)}</p>
          <Calls calls={asks.calls} />
          {asks.moreCalls && (
            <p className="note">There are more calls than are listed here. An approval does not cover the others.</p>
          )}
        </section>
        <section className="outcome outcome-bad">
          <h3>
            <span aria-hidden="true">✕</span> If it is denied
          </h3>
          <p>{ifDenied(asked, asks)}</p>
          <Calls calls={asks.onDenial} />
          {asks.moreOnDenial && <p className="note">There are more calls than are listed here.</p>}
        </section>
      </div>
      {hasSecrets([...asks.calls, ...asks.onDenial]) && (
        <p className="small dim">
          Secrets appear by name. Their values are filled in when a call is made, and may change until then; a policy
          that requires approval asks again if they do.
        </p>
      )}
    </>
  );
}

function Calls({ calls }: { calls: Call[] }) {
  const [all, setAll] = useState(false);
  if (calls.length === 0) return null;
  const shown = all ? calls : calls.slice(0, SHOWN);
  return (
    <>
      <ol className="calls">
        {shown.map((call) => (
          <li key={call.step}>
            <OneCall call={call} />
          </li>
        ))}
      </ol>
      {shown.length < calls.length && (
        <button type="button" className="link small" onClick={() => setAll(true)}>
          Show the other {calls.length - shown.length} calls
        </button>
      )}
    </>
  );
}

function OneCall({ call }: { call: Call }) {
  const known = values(call);
  return (
    <>
      <p className="call-says">
        {sentence(call)} <span className="dim small">step {call.step}</span>
      </p>
      {call.alsoIfApproved && <p className="small dim">It may also happen if it is approved.</p>}
      {call.tooLarge && (
        <p className="small unknown-note">Its arguments are too long to show, so an approval does not cover it.</p>
      )}
      {call.unknown && known.every((one) => !one.unknown) && (
        <p className="small unknown-note">
          {known.length === 0
            ? "Its arguments are not known yet, so an approval does not cover it."
            : "How often it is made is not known yet, so an approval does not cover it."}
        </p>
      )}
      {known.length > 0 && (
        <dl className="values">
          {known.slice(0, SHOWN_VALUES).map((one) => (
            <div key={one.name} data-unknown={one.unknown}>
              <dt>{one.name || "value"}</dt>
              <dd>
                {one.unknown && <span className="badge tone-wait">not known yet</span>}
                {one.unknown ? <code className="dim">{one.text}</code> : <span>{one.text}</span>}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {call.input !== undefined && (
        <details className="small">
          <summary>
            {known.length > SHOWN_VALUES ? `All ${known.length} values` : "As JSON"}
            {call.digest && ", with the digest"}
          </summary>
          <Value label={`Arguments of ${call.step}`} value={call.input} />
          {call.digest && (
            <p className="dim">
              Digest <code className="digest">{call.digest}</code>
            </p>
          )}
        </details>
      )}
    </>
  );
}
