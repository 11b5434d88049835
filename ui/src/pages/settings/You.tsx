// The signed-in user, and settings of this browser.
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client";
import { me, queries } from "../../api/queries";
import { ThemeChoice } from "../../components/Frame";
import { Got } from "../../components/Loading";
import { Trouble } from "../../components/Trouble";
import { useNoticePermission } from "../../lib/notices";
import { Once } from "./Once";

const NOTICES: Record<string, string> = {
  granted: "This browser notifies you while the page is open in the background. Choose the events under Notifications.",
  denied: "This browser blocks notifications from this page. Change it in the browser’s settings for this site.",
  missing: "This browser does not support notifications.",
};

export function You() {
  const query = useQuery(me);
  const notices = useNoticePermission();
  const navigate = useNavigate();
  const link = useMutation({ mutationFn: () => api<{ url: string }>("/sign-in-links", { method: "POST" }) });
  const signOut = async () => {
    await api("/sign-out", { method: "POST" });
    queries.clear();
    await navigate({ to: "/signed-out" });
  };
  return (
    <Got query={query}>
      {(who) => (
        <section className="card">
          <h2>{who.user}</h2>
          <dl className="facts">
            <dt>Organisation</dt>
            <dd>{who.organisation.name}</dd>
            <dt>Grants</dt>
            <dd className="mono">{who.grants.join(", ")}</dd>
          </dl>
          <ThemeChoice />
          {notices.state === "default" ? (
            <div>
              <button type="button" onClick={notices.ask}>
                Notify me in the browser
              </button>
            </div>
          ) : (
            <p>{NOTICES[notices.state]}</p>
          )}
          {link.data ? (
            <Once
              label="The one-time link that signs another browser in as you"
              secret={link.data.url}
              done={() => link.reset()}
            />
          ) : (
            <div className="row wrap">
              <button type="button" disabled={link.isPending} onClick={() => link.mutate()}>
                Sign another browser in
              </button>
              <button type="button" onClick={() => void signOut()}>
                Sign out
              </button>
            </div>
          )}
          {link.error && <Trouble error={link.error} />}
        </section>
      )}
    </Got>
  );
}
