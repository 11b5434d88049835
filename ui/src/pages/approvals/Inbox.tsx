// The open questions: a collapsed list with filters, and one card. What is shown never changes under the pointer: a card
// stays until its reader goes on, also when its question is answered or another one comes first.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import type { Approval } from "../../api/queries";
import { When } from "../../components/Status";
import { same, useAnswered } from "../../lib/answered";
import { answerable, chosen, type Side, withoutAnswer } from "../../lib/approvals";
import { question } from "../../lib/notices";
import { visible } from "../../lib/servers";
import { useWide } from "../../lib/useWide";
import { Ask } from "./Ask";
import { Acknowledged, Gone } from "./Over";
import { Verdict } from "./Verdict";
import "../../styles/approvals.css";

const SIDES: [Side, string][] = [
  ["mine", "For you"],
  ["others", "For others"],
  ["all", "All"],
];

export function Inbox({ all, user }: { all: Approval[]; user: string }) {
  const [side, setSide] = useState<Side>("mine");
  const [text, setText] = useState("");
  const wide = useWide();
  const navigate = useNavigate();
  const { ask: id = "" } = useSearch({ from: "/approvals" });
  const answered = useAnswered(user);
  const shown = chosen(all, side, text, user);
  const open = all.find((one) => one.id === id);
  const seen = useRef<Approval>(undefined);
  if (open) seen.current = open;
  const show = (next: string) => void navigate({ to: "/approvals", search: { ask: next }, replace: true });
  const first = shown[0]?.id;
  // With room for both, or only one question, the first card is open at once.
  const begin = id === "" && first !== undefined && (wide || shown.length === 1);
  useEffect(() => {
    if (begin && first) void navigate({ to: "/approvals", search: { ask: first }, replace: true });
  }, [begin, first, navigate]);
  const given = answered.find((one) => one.asked.id === id && (!open || same(one.asked, open)));
  const gone = seen.current?.id === id ? seen.current : undefined;
  const next = chosen(all, "mine", "", user).find((one) => one.id !== id);
  const goOn = next ? () => show(next.id) : undefined;
  const card =
    open?.kind === "verdict" && !given ? (
      <Verdict key={open.id} asked={open} user={user} />
    ) : given ? (
      <Acknowledged given={given} next={goOn} />
    ) : open ? (
      <Ask key={open.id} asked={open} user={user} />
    ) : gone ? (
      <Gone asked={gone} next={goOn} />
    ) : undefined;
  const count = (of: Side) => chosen(all, of, "", user).length;
  return (
    <>
      <div className="row wrap inbox-bar">
        <fieldset className="segments" aria-label="Which questions">
          {SIDES.map(([value, name]) => (
            <button key={value} type="button" aria-pressed={side === value} onClick={() => setSide(value)}>
              {name} <span className="segment-count">{count(value)}</span>
            </button>
          ))}
        </fieldset>
        <input
          type="search"
          aria-label="Filter questions"
          placeholder="Question, workflow or person"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      <div className="inbox" data-card={card !== undefined}>
        <div className="inbox-list">
          {shown.length === 0 && (
            <div className="card empty">
              <h2>{side === "mine" && text === "" ? "Nothing is waiting for you" : "No question matches"}</h2>
              {side === "mine" && text === "" && (
                <p>When a workflow reaches an approval that you may answer, it appears here at once.</p>
              )}
            </div>
          )}
          {shown.length > 0 && (
            <ul className="card flush asked-list" aria-label="Open questions">
              {shown.map((one) => (
                <Row key={one.id} asked={one} user={user} current={one.id === id} onOpen={() => show(one.id)} />
              ))}
            </ul>
          )}
        </div>
        {card && (
          <section className="inbox-card" aria-label="Question">
            {!wide && !(shown.length === 1 && first === id) && (
              <div>
                <button type="button" onClick={() => show("list")}>
                  ← All questions
                </button>
              </div>
            )}
            {card}
          </section>
        )}
      </div>
    </>
  );
}

function Row(row: { asked: Approval; user: string; current: boolean; onOpen: () => void }) {
  const { asked, user } = row;
  const silence = withoutAnswer(asked);
  const needed = asked.approvals ?? 1;
  return (
    <li>
      <button type="button" className="asked-row" aria-current={row.current} onClick={row.onOpen}>
        <span className="asked-title">{visible(question(asked))}</span>
        <span className="small dim">
          {asked.workflow} · {asked.created_by} · <When at={asked.since} />
        </span>
        <span className="small row wrap asked-foot">
          {asked.until && (
            <span className={silence.alarming ? "bad" : "dim"}>
              {silence.alarming ? "⚠ approved" : "denied"} <When at={asked.until} /> without an answer
            </span>
          )}
          {needed > 1 && (
            <span className="dim">
              {(asked.approved_by ?? []).length} of {needed} approved
            </span>
          )}
          {asked.mine && !answerable(asked, user) && <span className="dim">✓ you approved</span>}
        </span>
      </button>
    </li>
  );
}
