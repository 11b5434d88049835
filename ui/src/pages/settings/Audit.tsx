// The audit log: who did what, newest first, and whether it was tampered with.
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, page, type Schemas } from "../../api/client";
import { Loading } from "../../components/Loading";
import { Trouble } from "../../components/Trouble";
import { full } from "../../lib/time";

type Row = Schemas["Audit"];

export function Audit() {
  const [by, setBy] = useState("");
  const [action, setAction] = useState("");
  const query = useInfiniteQuery({
    queryKey: ["audit", by, action],
    queryFn: ({ pageParam }) => page<Row>("/audit", { by, action, limit: 100, cursor: pageParam }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 0,
  });
  const verify = useMutation({ mutationFn: () => api<Schemas["AuditVerdict"]>("/audit/verify") });
  const rows = query.data?.pages.flatMap((one) => one.data) ?? [];
  return (
    <section className="card flush">
      <div className="card-head">
        <div className="grow">
          <h2>Audit log</h2>
          <p className="small dim">
            Every row has a hash over itself and the previous row, so a changed or removed row is detected.
          </p>
        </div>
        <button type="button" disabled={verify.isPending} onClick={() => verify.mutate()}>
          Verify
        </button>
      </div>
      <div className="filters audit-filters">
        <label className="field">
          <span className="label">By</span>
          <input type="search" value={by} onChange={(event) => setBy(event.target.value)} />
        </label>
        <label className="field">
          <span className="label">Action</span>
          <input
            type="search"
            value={action}
            placeholder="run.cancel"
            onChange={(event) => setAction(event.target.value)}
          />
        </label>
        {verify.data && (
          <p role="status" className={verify.data.broken_at == null ? "badge tone-good" : "badge tone-bad"}>
            {verify.data.broken_at == null
              ? `✓ all ${verify.data.rows.toLocaleString()} rows verified`
              : `✕ row ${verify.data.broken_at} is invalid: it was changed, or a row before it was removed`}
          </p>
        )}
      </div>
      {verify.error && <Trouble error={verify.error} />}
      {query.error && <Trouble error={query.error} retry={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.data && rows.length === 0 && <p className="empty">No rows match.</p>}
      {rows.length > 0 && (
        <div className="table-box" tabIndex={0}>
          <table className="log">
            <thead>
              <tr>
                <th>When</th>
                <th>Who</th>
                <th>What</th>
                <th>To what</th>
                <th className="wide-only">More</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td className="nowrap">{full(row.at)}</td>
                  <td>{row.by}</td>
                  <td className="mono">{row.action}</td>
                  <td className="mono">{row.target}</td>
                  <td className="mono dim wide-only">{JSON.stringify(row.detail)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
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
