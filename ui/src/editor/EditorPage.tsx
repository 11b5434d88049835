// The editor's address: loads the newest version of a workflow, or asks for the dialect of a new one.

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Loading } from "../components/Loading";
import { Trouble } from "../components/Trouble";
import { Editor } from "./Editor";
import "./editor.css";
import type { DialectName } from "./model/types";
import { DIALECT_WORDS, TEMPLATES } from "./templates";
import { load } from "./useSave";

export default function EditorPage({ name }: { name?: string }) {
  return name === undefined ? <NewWorkflow /> : <Existing name={name} />;
}

function Existing({ name }: { name: string }) {
  // Loaded once: saving detects changes that others made meanwhile.
  const found = useQuery({
    queryKey: ["editor", name],
    queryFn: ({ signal }) => load(name, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (found.error) return <Trouble error={found.error} retry={() => void found.refetch()} />;
  if (!found.data) return <Loading />;
  return <Editor initial={found.data.source} base={found.data} />;
}

function NewWorkflow() {
  const [dialect, setDialect] = useState<DialectName | null>(null);
  if (dialect) return <Editor initial={TEMPLATES[dialect]} />;
  return (
    <>
      <h1>New workflow</h1>
      <p className="dim">Choose one of three dialects. All follow the same rules, and the canvas can draw each one.</p>
      <div className="columns">
        {(Object.keys(TEMPLATES) as DialectName[]).map((one) => (
          <section key={one} className="card">
            <h2>{DIALECT_WORDS[one].title}</h2>
            <p className="grow">{DIALECT_WORDS[one].text}</p>
            <pre className="value">{TEMPLATES[one]}</pre>
            <div>
              <button type="button" className={one === "tasks" ? "main" : ""} onClick={() => setDialect(one)}>
                Start with {DIALECT_WORDS[one].title.toLowerCase()}
              </button>
            </div>
          </section>
        ))}
      </div>
    </>
  );
}
