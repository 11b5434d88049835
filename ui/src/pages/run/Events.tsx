// The log of a run: its decisions, in order. Pages are added at the end, which grows while the run is unfinished.
import { useInfiniteQuery } from "@tanstack/react-query";
import { page, part } from "../../api/client";
import type { RunEvent } from "../../api/queries";
import { Loading } from "../../components/Loading";
import { Trouble } from "../../components/Trouble";
import { full } from "../../lib/time";

const PAGE = 200;
const KNOWN = new Set(["run_id", "version", "at", "type", "step"]);

export function Events({ run, version }: { run: string; version: number }) {
  const query = useInfiniteQuery({
    // The run's version is part of the key: the current log stays visible while the longer one loads.
    queryKey: ["events", run, version],
    queryFn: ({ pageParam }) => page<RunEvent>(`/runs/${part(run)}/events`, { limit: PAGE, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    placeholderData: (before) => before,
  });
  if (query.error && !query.data) return <Trouble error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Loading />;
  const events = query.data.pages.flatMap((one) => one.data);
  return (
    <section className="card flush">
      <div className="table-box" tabIndex={0}>
        <table className="log">
          <thead>
            <tr>
              <th>When</th>
              <th>What</th>
              <th>Step</th>
              <th>More</th>
            </tr>
          </thead>
          <tbody>
            {events.map((event, at) => (
              <tr key={`${event.version} ${at}`}>
                <td className="nowrap">{full(event.at)}</td>
                <td>{event.type.replaceAll("_", " ")}</td>
                <td className="mono">{"step" in event ? event.step : ""}</td>
                <td className="mono dim">{rest(event)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {query.hasNextPage && (
        <p className="card-foot">
          <button type="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more
          </button>
        </p>
      )}
    </section>
  );
}

/** The rest of the fact in one line. */
function rest(event: RunEvent): string {
  const parts = Object.entries(event).filter(([name]) => !KNOWN.has(name));
  return parts.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");
}
