// Recent answers from the audit trail, for administrators.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { page, type Schemas } from "../../api/client";
import { Got } from "../../components/Loading";
import { Status, When } from "../../components/Status";

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
