// Shown without a session: how to sign in.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { api } from "../api/client";
import { type Me, queries } from "../api/queries";

export default function SignedOut() {
  const navigate = useNavigate();
  // Checked again when the window gets focus: the link may have been opened meanwhile.
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
      <p>In a terminal on the server’s machine, run:</p>
      <pre className="value">
        <code>stepwell login</code>
      </pre>
      <p>It prints a link. Open the link in this browser; it works once.</p>
      <p className="small">
        No access to that machine? Ask a user with the right <code>admin</code> to create a link for you.
      </p>
    </div>
  );
}
