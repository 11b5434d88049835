// The difference between two texts, line by line.
import { useMemo } from "react";
import { type DiffLine, diffLines } from "../lib/diff";
import "../styles/diff.css";

export function TextDiff({ before, after, title }: { before: string; after: string; title: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const signs: Record<DiffLine["kind"], string> = { same: " ", out: "−", in: "+" };
  return (
    <section className="card flush" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
        <span className="small dim">
          {lines.filter((line) => line.kind === "in").length} lines in,{" "}
          {lines.filter((line) => line.kind === "out").length} out
        </span>
      </div>
      <pre className="diff" tabIndex={0}>
        {lines.map((line, at) => (
          <span key={at} className={`diff-${line.kind}`}>
            <span className="diff-number">{line.old ?? ""}</span>
            <span className="diff-number">{line.new ?? ""}</span>
            {`${signs[line.kind]} ${line.text}\n`}
          </span>
        ))}
      </pre>
    </section>
  );
}
