// Readable failures, with the request id that the server's log has too.
import { Link } from "@tanstack/react-router";
import { Problem } from "../api/client";
import { words } from "../lib/problem";

export function Trouble({ error, retry }: { error: unknown; retry?: () => void }) {
  const said = words(error);
  return (
    <div className="trouble" role="alert">
      <p className="trouble-title">{said.title}</p>
      {said.hint && <p>{said.hint}</p>}
      {error instanceof Problem && error.faults.length > 0 && (
        <ul>
          {error.faults.map((fault, at) => (
            <li key={at}>
              {fault.path && <code>{fault.path}</code>} {fault.message}
              {fault.hint && <>; {fault.hint}</>}
              {fault.line != null && <span className="dim"> (line {fault.line})</span>}
            </li>
          ))}
        </ul>
      )}
      {said.requestId && (
        <p className="dim small">
          Request <code>{said.requestId}</code>: the server’s log has it under this id.
        </p>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function NotFound() {
  return (
    <div className="empty">
      <h1>Page not found</h1>
      <p>The address may be mistyped, or belong to another version.</p>
      <Link to="/">Go to the home page</Link>
    </div>
  );
}
