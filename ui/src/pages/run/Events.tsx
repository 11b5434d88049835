// The log of a run: its decisions as sentences, in order. Pages are added at the end, which grows while the run is unfinished.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { page, part } from "../../api/client";
import type { Run, RunEvent } from "../../api/queries";
import { Loading } from "../../components/Loading";
import { Trouble } from "../../components/Trouble";
import { sentence } from "../../lib/sentences";
import { visible } from "../../lib/servers";
import { full, length } from "../../lib/time";

const PAGE = 200;

interface Props {
  run: Run;
  select: (path: string) => void;
}

export function Events({ run: { id: run, version, created_at }, select }: Props) {
  const [text, setText] = useState("");
  const [problems, setProblems] = useState(false);
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
  const events = query.data.pages.flatMap((one) => one.data).map((event) => ({ event, ...sentence(event) }));
  const wanted = text.toLowerCase();
  const shown = events.filter(
    (one) =>
      (!problems || one.tone === "bad" || one.tone === "wait") &&
      `${one.step} ${one.says}`.toLowerCase().includes(wanted),
  );
  const from = Date.parse(created_at);
  return (
    <section className="card flush">
      <div className="card-head log-head">
        <input
          type="search"
          aria-label="Filter the log"
          placeholder="Step or text"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <label className="check small">
          <input type="checkbox" checked={problems} onChange={(event) => setProblems(event.target.checked)} /> Only
          failures and waits
        </label>
        <span className="small dim grow">
          {shown.length.toLocaleString()} of {events.length.toLocaleString()}
          {query.hasNextPage ? " so far" : ""}
        </span>
      </div>
      <div className="table-box log-box" tabIndex={0}>
        <table className="log">
          <thead>
            <tr>
              <th>When</th>
              <th>Step</th>
              <th>What happened</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ event, step, says, tone }, at) => (
              <tr key={`${event.version} ${at}`}>
                <td className="nowrap" title={full(event.at)}>
                  <time dateTime={event.at}>+{length(Date.parse(event.at) - from)}</time>
                </td>
                <td className="mono">
                  {step && (
                    <button type="button" className="link" onClick={() => select(step)}>
                      {step}
                    </button>
                  )}
                </td>
                <td className={`says-${tone}`}>{visible(says)}</td>
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
