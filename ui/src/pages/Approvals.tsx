// Approvals: open requests with exactly what will happen, and the answer. Also designed for phones.
import { useQuery } from "@tanstack/react-query";
import { useRouterState } from "@tanstack/react-router";
import { useEffect } from "react";
import { approvals, me } from "../api/queries";
import { Got } from "../components/Loading";
import { useNoticePermission } from "../lib/notices";
import { Ask } from "./approvals/Ask";
import { History } from "./approvals/History";
import { Reviews } from "./approvals/Reviews";
import { Verdict } from "./approvals/Verdict";

export default function Approvals() {
  const query = useQuery({ ...approvals, staleTime: 0 });
  const who = useQuery(me);
  const notices = useNoticePermission();
  const hash = useRouterState({ select: (state) => state.location.hash });
  useEffect(() => {
    if (hash && query.data) document.getElementById(hash)?.scrollIntoView({ block: "start" });
  }, [hash, query.data]);
  return (
    <>
      <div className="head">
        <h1>Approvals</h1>
        {notices.state === "default" && (
          <button type="button" onClick={notices.ask}>
            Notify me in the browser
          </button>
        )}
      </div>
      <Got query={query}>
        {(all) => {
          const mine = all.filter((one) => one.mine);
          const others = all.filter((one) => !one.mine);
          return (
            <>
              {mine.length === 0 && (
                <div className="card empty">
                  <h2>Nothing is waiting for you</h2>
                  <p>When a workflow reaches an approval that you may answer, it appears here at once.</p>
                </div>
              )}
              {mine.map((one) =>
                one.kind === "verdict" ? (
                  <Verdict key={one.id} asked={one} />
                ) : (
                  <Ask key={`${one.id} ${one.digest ?? one.attempt}`} asked={one} />
                ),
              )}
              {others.length > 0 && (
                <>
                  <h2>Waiting for others</h2>
                  {others.map((one) => (
                    <Ask key={`${one.id} ${one.digest ?? one.attempt}`} asked={one} />
                  ))}
                </>
              )}
            </>
          );
        }}
      </Got>
      <Reviews may={["admin", "workflow.define"].some((grant) => who.data?.grants.includes(grant))} />
      {who.data?.grants.includes("admin") && <History />}
    </>
  );
}
