// Shared by all settings pages: a list from the server as a table, a way to add an entry, and an empty state.
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Problem, page } from "../../api/client";
import { queries } from "../../api/queries";
import { Dialog } from "../../components/Dialog";
import { Got } from "../../components/Loading";

/** A list by its path, and its query key. */
export function useListed<T>(path: string) {
  return useQuery({ queryKey: ["settings", path], queryFn: async () => (await page<T>(path)).data, staleTime: 0 });
}

export function changed(path: string): Promise<void> {
  return queries.invalidateQueries({ queryKey: ["settings", path] });
}

interface Props<T> {
  path: string;
  title: string;
  /** Their purpose, in one sentence. */
  about: ReactNode;
  /** Shown when the list is empty. */
  none: string;
  heads: string[];
  row: (item: T) => ReactNode;
  id: (item: T) => string;
  /** The dialog to add one. */
  add?: { label: string; form: (done: () => void) => ReactNode };
}

export function Listed<T>({ path, title, about, none, heads, row, id, add }: Props<T>) {
  const query = useListed<T>(path);
  const [adding, setAdding] = useState(false);
  const done = () => {
    setAdding(false);
    void changed(path);
  };
  if (query.error instanceof Problem && query.error.status === 404) {
    return (
      <section className="card">
        <h2>{title}</h2>
        <p className="dim">This server does not support it. A newer version may.</p>
      </section>
    );
  }
  return (
    <section className="card flush">
      <div className="card-head">
        <div className="grow">
          <h2>{title}</h2>
          <p className="small dim">{about}</p>
        </div>
        {add && (
          <button type="button" className="main" onClick={() => setAdding(true)}>
            {add.label}
          </button>
        )}
      </div>
      {adding && add && (
        <Dialog title={add.label} onClose={done}>
          {add.form(done)}
        </Dialog>
      )}
      <Got query={query}>
        {(all) =>
          all.length === 0 ? (
            <p className="empty">{none}</p>
          ) : (
            <div className="table-box" tabIndex={0}>
              <table>
                <thead>
                  <tr>
                    {heads.map((head) => (
                      <th key={head}>{head || <span className="hidden-label">Actions</span>}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {all.map((item) => (
                    <tr key={id(item)}>{row(item)}</tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Got>
    </section>
  );
}
