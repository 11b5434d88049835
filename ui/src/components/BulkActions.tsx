// Cancels or retries all runs that match the filters, and shows the result.
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { queries, type RunFilter } from "../api/queries";
import { Confirm } from "./Confirm";

type Result = Schemas["BulkResult"];

export function BulkActions({ filter }: { filter: RunFilter }) {
  const [said, setSaid] = useState("");
  const act = (verb: "cancel" | "retry") => async () => {
    const done = await api<Result>(`/runs/${verb}`, { method: "POST", body: { filter } });
    const refused = done.refused.length > 0 ? `, ${done.refused.length} refused (${done.refused[0]?.reason})` : "";
    setSaid(
      `${done.done.length} ${verb === "cancel" ? "cancelled" : "retried"}${refused}${done.more ? "; there are more, so repeat this" : ""}.`,
    );
    await queries.invalidateQueries({ queryKey: ["runs"] });
  };
  const which = Object.keys(filter).length > 0 ? "that match the filters" : "of the whole organisation";
  return (
    <div className="row wrap">
      {said && (
        <span role="status" className="dim small">
          {said}
        </span>
      )}
      <Confirm label="Retry failed…" title="Retry failed runs" className="" act={act("retry")}>
        <p>Retries all runs {which} that failed, timed out or were cancelled. Steps that did not succeed run again.</p>
      </Confirm>
      <Confirm label="Cancel all…" title="Cancel runs" act={act("cancel")}>
        <p>Cancels all unfinished runs {which}. Running steps are stopped, the rest does not start.</p>
      </Confirm>
    </div>
  );
}
