// A tool of an MCP server: its state, its description, and accepting it.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, part } from "../../api/client";
import { Dialog } from "../../components/Dialog";
import { When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Value } from "../../components/Value";
import { acceptance, isHeld, type McpTool, sayingNow, standingLook, visible } from "../../lib/servers";
import { changed } from "./Listed";

export const PATH = "/mcp-servers";
/** The `accepted_by` of tools accepted automatically. */
const FIRST_SEEN = "first seen";

export function Tool({ server, tool, admin }: { server: string; tool: McpTool; admin: boolean }) {
  const look = standingLook(tool.standing);
  const name = visible(tool.name ?? tool.tool);
  return (
    <li className="stack tool" aria-label={name}>
      <div className="row wrap between">
        <div className="row wrap">
          <strong className="mono digest">{name}</strong>
          {tool.title && <span>{visible(tool.title)}</span>}
          <span className={`badge tone-${look.tone}`}>{look.words}</span>
        </div>
        {isHeld(tool) &&
          (admin ? (
            <Accept server={server} tools={[tool]} label="Accept…" of={name} />
          ) : (
            <span className="dim">An administrator can accept it.</span>
          ))}
      </div>
      {tool.why && <p>It is held: {visible(tool.why)}.</p>}
      <Descriptions tool={tool} />
      <Digests tool={tool} />
      <Takes tool={tool} />
    </li>
  );
}

function Descriptions({ tool }: { tool: McpTool }) {
  const now = tool.description ?? "";
  const before = tool.accepted_description ?? "";
  if (tool.standing === "held") return null;
  if (tool.standing === "missing") return <Description label="As accepted" text={before} />;
  if (tool.standing !== "changed") return <Description text={now} />;
  const saying = sayingNow(tool);
  if (saying !== "different") {
    return (
      <>
        <Description text={now} />
        <p>
          {saying === "same"
            ? "Its description is the one that was accepted. Its title, input, output or annotations changed."
            : "Its description starts like the accepted one; the rest was too long to store and may differ."}
        </p>
      </>
    );
  }
  return (
    <div className="columns">
      <Description label="As accepted" text={before} />
      <Description label="As offered now" text={now} />
    </div>
  );
}

/** Text from the MCP server, shown verbatim and only as plain text. */
function Description({ label, text }: { label?: string; text: string }) {
  return (
    <div>
      {label && <p className="small dim">{label}</p>}
      {text ? <p className="says">{visible(text)}</p> : <p className="dim">It has no description.</p>}
    </div>
  );
}

/** The offered and the accepted version, with when and by whom. */
function Digests({ tool }: { tool: McpTool }) {
  const same = tool.digest === tool.accepted_digest;
  return (
    <p className="small dim">
      {tool.digest && (
        <>
          Digest <Short digest={tool.digest} />
          {tool.accepted_digest ? ", " : ""}
        </>
      )}
      {tool.accepted_digest && (
        <>
          {same ? (
            "as it was accepted"
          ) : (
            <>
              accepted was <Short digest={tool.accepted_digest} />
            </>
          )}{" "}
          <When at={tool.accepted_at} />
          {tool.accepted_by === FIRST_SEEN ? ", when it was first seen" : ` by ${tool.accepted_by ?? "someone"}`}
        </>
      )}
    </p>
  );
}

function Short({ digest }: { digest: string }) {
  return <code title={digest}>{digest.slice(0, 12)}…</code>;
}

function Takes({ tool }: { tool: McpTool }) {
  if (tool.input_schema == null) return null;
  return (
    <details className="small">
      <summary>Input</summary>
      <Value label={`Input of ${visible(tool.tool)}`} value={visible(JSON.stringify(tool.input_schema, null, 2))} />
    </details>
  );
}

/** Asks for confirmation. Accepts exactly what is shown, even if the list behind has changed. */
export function Accept({ server, tools, label, of }: { server: string; tools: McpTool[]; label: string; of?: string }) {
  const [looked, setLooked] = useState<McpTool[]>();
  const send = useMutation({
    mutationFn: (these: McpTool[]) =>
      api(`${PATH}/${part(server)}/accept`, { method: "POST", body: acceptance(these) }),
    onSuccess: () => setLooked(undefined),
    // A refusal also means that the list is out of date.
    onSettled: () => changed(PATH),
  });
  const open = () => {
    send.reset();
    setLooked(tools);
  };
  return (
    <>
      <button type="button" onClick={open} aria-label={of ? `Accept ${of}` : `Accept all of ${server}`}>
        {label}
      </button>
      {looked && (
        <Dialog
          title={of ? `Accept ${of}` : `Accept ${looked.length} tools of ${server}`}
          onClose={() => setLooked(undefined)}
        >
          <p>Steps can then call what is shown here. Models trust a tool’s description: treat it as untrusted text.</p>
          {looked.map((tool) => (
            <div key={tool.tool} className="stack">
              <h3 className="mono digest">{visible(tool.name ?? tool.tool)}</h3>
              <Descriptions tool={tool} />
              <Takes tool={tool} />
              <p className="small dim digest">
                Digest <code>{tool.digest}</code>
              </p>
            </div>
          ))}
          {send.error && <Trouble error={send.error} />}
          <div className="row">
            <button type="button" className="main" disabled={send.isPending} onClick={() => send.mutate(looked)}>
              Accept
            </button>
            <button type="button" onClick={() => setLooked(undefined)}>
              Go back
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
