// A loading indicator, shown with a delay because most responses are fast.
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { Trouble } from "./Trouble";

export function Loading() {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="spin" role="status">
      {late ? "Loading…" : ""}
    </div>
  );
}

/** The data of a query, or its state. Old data stays visible while new data loads. */
export function Got<T>({ query, children }: { query: UseQueryResult<T>; children: (data: T) => ReactNode }) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <Trouble error={query.error} retry={() => void query.refetch()} />;
  return <Loading />;
}
