// A tool of an MCP server: how it stands, what it says of itself, and accepting it.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, part } from "../../api/client";
import { Dialog } from "../../components/Dialog";
import { When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Value } from "../../components/Value";
import { acceptance, isHeld, type McpTool, standingLook, visible } from "../../lib/servers";
import { changed } from "./Listed";

export const PATH = "/mcp-servers";

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
        {isHeld(tool) && (admin ? <Accept server={server} tools={[tool]} label="Accept…" of={name} /> : <span className="dim">An administrator can accept it.</span>)}
      </div>
      <Descriptions tool={tool} />
      <p className="small dim">
        <Digest label="Digest" digest={tool.digest} /> <Digest label={tool.digest === tool.accepted_digest ? "the same as accepted" : "accepted"} digest={tool.accepted_digest} />{" "}
        {tool.accepted_at && (
          <>
            <When at={tool.accepted_at} /> by {tool.accepted_by}
          </>
        )}
      </p>
      {tool.input_schema != null && (
        <details className="small">
          <summary>What it takes</summary>
          <Value label={`What ${name} takes`} value={visible(JSON.stringify(tool.input_schema, null, 2))} />
        </details>
      )}
    </li>
  );
}

function Descriptions({ tool }: { tool: McpTool }) {
  const now = tool.description ?? "";
  const before = tool.accepted_description ?? "";
  if (tool.standing === "missing") return <Description label="As accepted" text={before} />;
  if (tool.standing !== "changed") return <Description text={now} />;
  if (now === before) {
    return (
      <>
        <Description text={now} />
        <p>It says the same as when it was accepted. What it takes, gives or claims of itself is different.</p>
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

/** The server's own words: shown as they are, and never as anything but text. */
function Description({ label, text }: { label?: string; text: string }) {
  return (
    <div>
      {label && <p className="small dim">{label}</p>}
      {text ? <p className="says">{visible(text)}</p> : <p className="dim">It does not say what it does.</p>}
    </div>
  );
}

function Digest({ label, digest }: { label: string; digest: string | null | undefined }) {
  if (!digest) return null;
  return (
    <>
      {label}{" "}
      <code title={digest}>{digest.slice(0, 12)}…</code>
    </>
  );
}

/** Asks once more. What is shown is what is accepted, whatever the list behind says by then. */
export function Accept({ server, tools, label, of }: { server: string; tools: McpTool[]; label: string; of?: string }) {
  const [looked, setLooked] = useState<McpTool[]>();
  const send = useMutation({
    mutationFn: (these: McpTool[]) => api(`${PATH}/${part(server)}/accept`, { method: "POST", body: acceptance(these) }),
    onSuccess: () => setLooked(undefined),
    // A refusal, too, says that the list is out of date.
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
        <Dialog title={of ? `Accept ${of}` : `Accept ${looked.length} tools of ${server}`} onClose={() => setLooked(undefined)}>
          <p>Steps can call what is shown here from then on. A description is what a model is told to believe: read it as a stranger’s words.</p>
          {looked.map((tool) => (
            <div key={tool.tool} className="stack">
              <h3 className="mono digest">{visible(tool.name ?? tool.tool)}</h3>
              <Descriptions tool={tool} />
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
              Leave it
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
