// A call with an unknown outcome: a person has to check and report what happened.
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, part } from "../../api/client";
import { type Approval, queries } from "../../api/queries";
import { useSchemaForm } from "../../components/SchemaForm";
import { When } from "../../components/Status";
import { Trouble } from "../../components/Trouble";
import { Value } from "../../components/Value";
import { remember } from "../../lib/answered";
import { useSettled } from "../../lib/useSettled";

const SAID: Record<string, string> = {
  happened: "it happened",
  run_again: "it did not happen, run it again",
  fail: "let it fail",
};

export function Verdict({ asked, user }: { asked: Approval; user: string }) {
  const settled = useSettled(asked.id);
  const form = useSchemaForm(undefined, {}, "Its result");
  const say = useMutation({
    mutationFn: (body: { verdict: string; output?: unknown }) =>
      api(`/runs/${part(asked.run_id)}/steps/${part(asked.step)}/verdict`, { method: "POST", body }),
    onSuccess: (_, { verdict }) =>
      remember({ asked, user, answer: SAID[verdict] ?? verdict, comment: "", at: new Date().toISOString() }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["approvals"] }),
  });
  const happened = () => {
    const output = form.take();
    if (output !== undefined) say.mutate({ verdict: "happened", output });
  };
  return (
    <article className="card ask" id={asked.id} aria-label={`Did the call of ${asked.step} happen?`}>
      <h2 className="question">Did the call of {asked.step} happen?</h2>
      <p>
        It may be made at most once, and its process was lost before it reported the outcome. Check the called service,
        then choose what happened.
      </p>
      <p className="small dim">
        {asked.workflow} ·{" "}
        <Link to="/runs/$run" params={{ run: asked.run_id }} search={{ step: asked.step }}>
          the run
        </Link>{" "}
        · asked <When at={asked.since} />
      </p>
      <Value label="What was sent" value={asked.asks} />
      {form.view}
      {say.error && <Trouble error={say.error} />}
      <div className="row wrap answers">
        <button type="button" className="main" disabled={say.isPending || !settled || !asked.mine} onClick={happened}>
          It happened
        </button>
        <button
          type="button"
          disabled={say.isPending || !settled || !asked.mine}
          onClick={() => say.mutate({ verdict: "run_again" })}
        >
          It did not: run it again
        </button>
        <button
          type="button"
          className="danger"
          disabled={say.isPending || !settled || !asked.mine}
          onClick={() => say.mutate({ verdict: "fail" })}
        >
          Let it fail
        </button>
      </div>
    </article>
  );
}
