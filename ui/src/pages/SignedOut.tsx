// Nobody is signed in: how to get in.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { api } from "../api/client";
import { type Me, queries } from "../api/queries";

export default function SignedOut() {
  const navigate = useNavigate();
  // Looked at once more when the window comes to the front: the link may have been opened meanwhile.
  const who = useQuery({
    queryKey: ["signed-in"],
    queryFn: () => api<Me>("/me"),
    retry: false,
    refetchOnWindowFocus: "always",
    gcTime: 0,
  });
  useEffect(() => {
    if (!who.data) return;
    queries.clear();
    void navigate({ to: "/" });
  }, [who.data, navigate]);
  return (
    <div className="card empty">
      <img src="/favicon.svg" alt="" width="48" height="48" />
      <h1>Sign in to Stepwell</h1>
      <p>On the machine where the server runs, in a terminal:</p>
      <pre className="value">
        <code>stepwell login</code>
      </pre>
      <p>It prints a link. Open the link in this browser; it works once.</p>
      <p className="small">
        No terminal there? Ask somebody with the right <code>admin</code> to make a link for you.
      </p>
    </div>
  );
}
