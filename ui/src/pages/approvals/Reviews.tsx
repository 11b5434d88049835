// What agents wrote and a person should read: the difference, what is new, and the answer.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, part } from "../../api/client";
import { Got } from "../../components/Loading";
import { When } from "../../components/Status";
import { TextDiff } from "../../components/TextDiff";
import { Trouble } from "../../components/Trouble";
import { noteworthy, openReviews, type Review, type ReviewDetail, reviewDetail, writer } from "../../lib/reviews";
import { visible } from "../../lib/servers";

export function Reviews({ may }: { may: boolean }) {
  const query = useQuery(openReviews);
  if (!query.data || query.data.length === 0) return null;
  return (
    <>
      <h2>Written by agents</h2>
      {query.data.map((review) => (
        <Item key={review.id} review={review} may={may} />
      ))}
    </>
  );
}

function Item({ review, may }: { review: Review; may: boolean }) {
  const [open, setOpen] = useState(false);
  const what = review.version ? `version ${review.version}` : "a proposal";
  return (
    <section className="card stack" aria-label={`Review of ${review.workflow}`}>
      <div className="row wrap between">
        <h3>
          {visible(review.workflow)}: {what}
        </h3>
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide" : "Show"}
        </button>
      </div>
      <p className="small dim">
        By {visible(writer(review))}, <When at={review.written_at} />
      </p>
      {review.reason && <p className="says">{visible(review.reason)}</p>}
      {open && <Shown id={review.id} may={may} />}
    </section>
  );
}

function Shown({ id, may }: { id: string; may: boolean }) {
  const query = useQuery(reviewDetail(id));
  return <Got query={query}>{(review) => <Detail review={review} may={may} />}</Got>;
}

function Detail({ review, may }: { review: ReviewDetail; may: boolean }) {
  const title = review.base ? `Changes since version ${review.base}` : "No version is accepted yet";
  return (
    <>
      <ul>
        {noteworthy(review).map((line) => (
          <li key={line}>{visible(line)}</li>
        ))}
      </ul>
      <TextDiff before={visible(review.before ?? "")} after={visible(review.source)} title={title} />
      {may && <Answer key={review.digest} review={review} />}
    </>
  );
}

function Answer({ review }: { review: ReviewDetail }) {
  const [comment, setComment] = useState("");
  const client = useQueryClient();
  const answer = useMutation({
    // Exactly what is shown.
    mutationFn: (verb: "accept" | "refuse") => {
      const body = { digest: review.digest, ...(comment ? { comment } : {}) };
      return api(`/reviews/${part(review.id)}/${verb}`, { method: "POST", body });
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["reviews"] }),
  });
  return (
    <>
      <label className="stack">
        Comment for the agent
        <textarea value={comment} onChange={(event) => setComment(event.target.value)} rows={2} />
      </label>
      <div className="row">
        <button type="button" className="primary" disabled={answer.isPending} onClick={() => answer.mutate("accept")}>
          Accept
        </button>
        <button type="button" disabled={answer.isPending} onClick={() => answer.mutate("refuse")}>
          Refuse
        </button>
      </div>
      {answer.error && <Trouble error={answer.error} />}
    </>
  );
}
