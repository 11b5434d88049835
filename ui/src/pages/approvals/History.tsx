// Recent answers: from the audit trail for administrators, those of this tab for everyone else.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { page, type Schemas } from "../../api/client";
import { Got } from "../../components/Loading";
import { Status, When } from "../../components/Status";
import { useAnswered } from "../../lib/answered";
import { question } from "../../lib/notices";
import { visible } from "../../lib/servers";

type Row = Schemas["Audit"];
const SHOWN = 20;

export function History() {
  const query = useQuery({
    queryKey: ["approvals", "history"],
    queryFn: async () => {
      const of = async (action: string) => (await page<Row>("/audit", { action, limit: SHOWN })).data;
      const all = (await Promise.all([of("step.approve"), of("step.deny"), of("step.settle")])).flat();
      return all.sort((a, b) => b.id - a.id).slice(0, SHOWN);
    },
  });
  return (
    <section className="card flush">
      <div className="card-head">
        <h2>Recently answered</h2>
      </div>
      <Got query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="empty">Nothing has been answered yet.</p>
          ) : (
            <div className="table-box" tabIndex={0}>
              <table>
                <thead>
                  <tr>
                    <th>Answer</th>
                    <th>By</th>
                    <th>When</th>
                    <th>Step</th>
                    <th className="wide-only">Comment</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row) => {
                    const detail = (row.detail ?? {}) as { step?: string; comment?: string | null };
                    return (
                      <tr key={row.id}>
                        <td>
                          <Status
                            status={
                              row.action === "step.approve"
                                ? "approved"
                                : row.action === "step.deny"
                                  ? "denied"
                                  : "settled"
                            }
                          />
                        </td>
                        <td>{row.by}</td>
                        <td>
                          <When at={row.at} />
                        </td>
                        <td>
                          <Link
                            to="/runs/$run"
                            params={{ run: row.target }}
                            search={detail.step ? { step: detail.step } : {}}
                          >
                            {detail.step ?? row.target}
                          </Link>
                        </td>
                        <td className="wide-only">{detail.comment ?? ""}</td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          )
        }
      </Got>
    </section>
  );
}

/** The audit trail is for administrators. */
export function GivenHere({ user }: { user: string }) {
  const answered = useAnswered(user);
  if (answered.length === 0) return null;
  return (
    <section className="card">
      <h2>Answered by you in this tab</h2>
      <ul className="plain-list">
        {answered.map((one) => (
          <li key={`${one.asked.id} ${one.at}`} className="row wrap">
            <Status status={one.answer} />
            <Link to="/runs/$run" params={{ run: one.asked.run_id }} search={{ step: one.asked.step }}>
              {visible(question(one.asked))}
            </Link>
            <When at={one.at} />
          </li>
        ))}
      </ul>
    </section>
  );
}
