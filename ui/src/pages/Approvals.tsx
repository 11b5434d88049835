// Approvals: open questions with exactly what will happen, and the answer. Also designed for phones.
import { useQuery } from "@tanstack/react-query";
import { approvals, me } from "../api/queries";
import { Got } from "../components/Loading";
import { useNoticePermission } from "../lib/notices";
import { GivenHere, History } from "./approvals/History";
import { Inbox } from "./approvals/Inbox";
import { Reviews } from "./approvals/Reviews";

export default function Approvals() {
  const query = useQuery({ ...approvals, staleTime: 0 });
  const who = useQuery(me);
  const notices = useNoticePermission();
  const user = who.data?.user ?? "";
  const may = (grant: string) => who.data?.grants.includes(grant) ?? false;
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
      <Got query={query}>{(all) => <Inbox all={all} user={user} />}</Got>
      <Reviews may={may("admin") || may("workflow.define")} />
      {may("admin") ? <History /> : <GivenHere user={user} />}
    </>
  );
}
