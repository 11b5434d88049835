// The page's one connection for live events: open while a user is signed in; its events update the query cache.
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { showNotice } from "../lib/notices";
import { tell } from "./bus";
import { Refresher } from "./refresh";
import { follow } from "./stream";

const Connected = createContext(false);

export function Live({ on, children }: { on: boolean; children: ReactNode }) {
  const client = useQueryClient();
  const [connected, setConnected] = useState(false);
  useEffect(() => {
    if (!on) return;
    const refresher = new Refresher(client);
    const stop = follow({
      event: (event) => {
        refresher.event(event);
        tell(event);
      },
      notice: showNotice,
      connected: (on) => {
        setConnected(on);
        // Events that were missed follow; requests that failed meanwhile would not be repeated.
        if (on) void client.refetchQueries({ type: "active", predicate: (one) => one.state.status === "error" });
      },
      again: () => refresher.all(),
    });
    return () => {
      stop();
      setConnected(false);
    };
  }, [on, client]);
  return <Connected.Provider value={connected}>{children}</Connected.Provider>;
}

export function useConnected(): boolean {
  return useContext(Connected);
}
