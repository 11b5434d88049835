// Runs that steps of this run started.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { runsOf } from "../../api/queries";
import { Got } from "../../components/Loading";
import { RunTable } from "../../components/RunTable";

export function Children({ run }: { run: string }) {
  const query = useQuery(runsOf({ parent: run }, 50));
  return (
    <section className="card flush">
      <Got query={query}>
        {(got) =>
          got.runs.length === 0 ? (
            <p className="empty">No step of this run started another workflow.</p>
          ) : (
            <>
              <RunTable runs={got.runs} />
              {got.more && (
                <p className="card-foot">
                  <Link to="/runs" search={{ parent: run }}>
                    Show all
                  </Link>
                </p>
              )}
            </>
          )
        }
      </Got>
    </section>
  );
}
