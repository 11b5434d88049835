// The frame around every page: navigation, open approvals, the signed-in user, the state of the live stream.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useState } from "react";
import { api, Problem, whenSignedOut } from "../api/client";
import { approvals, me, queries } from "../api/queries";
import { forgetAnswers } from "../lib/answered";
import { answerable } from "../lib/approvals";
import { type Choice, setTheme, useTheme } from "../lib/theme";
import { full } from "../lib/time";
import { Live, useConnected } from "../live/Live";
import { ApprovalIcon, HomeIcon, RunsIcon, SettingsIcon, WorkflowIcon } from "./icons";
import { Keys, openKeyHelp, openPalette } from "./Keys";
import { Loading } from "./Loading";
import { Trouble } from "./Trouble";

/** A restart within this time is not worth a banner. */
const PATIENCE = 4_000;
/** How often a server that is away is asked again. */
const AGAIN = 3_000;

function isAway(error: unknown): boolean {
  return error instanceof Problem && error.status === 0;
}

export function Frame() {
  const navigate = useNavigate();
  const away = useRouterState({ select: (state) => state.location.pathname === "/signed-out" });
  useEffect(() => whenSignedOut(() => void navigate({ to: "/signed-out" })), [navigate]);
  const who = useQuery({
    ...me,
    enabled: !away,
    // A page that was opened while the server was away begins when it is back.
    refetchInterval: (query) => (isAway(query.state.error) ? AGAIN : false),
  });
  if (away) {
    return (
      <main className="page">
        <Outlet />
      </main>
    );
  }
  const unreachable = who.error instanceof Problem && who.error.status !== 401 ? who.error : undefined;
  return (
    <Live on={who.isSuccess}>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <Keys />
      <div className="frame">
        <Side />
        <main className="page" id="content" tabIndex={-1}>
          <Away />
          {unreachable && <Trouble error={unreachable} retry={() => void who.refetch()} />}
          {who.isSuccess && (
            <Suspense fallback={<Loading />}>
              <Outlet />
            </Suspense>
          )}
        </main>
      </div>
    </Live>
  );
}

/** Says that the server is away, until it is back: what is shown meanwhile may be old. */
function Away() {
  const connected = useConnected();
  const [since, setSince] = useState<string>();
  useEffect(() => {
    if (connected) return setSince(undefined);
    const lost = new Date().toISOString();
    const timer = setTimeout(() => setSince(lost), PATIENCE);
    return () => clearTimeout(timer);
  }, [connected]);
  if (!since) return null;
  return (
    <p className="away" role="status">
      <strong>The server does not respond.</strong> This page shows what was known at {full(since)}, and continues by
      itself when the server is back.
    </p>
  );
}

function Side() {
  const who = useQuery(me);
  const waiting = useQuery({ ...approvals, enabled: who.isSuccess });
  const mine = (waiting.data ?? []).filter((one) => answerable(one, who.data?.user));
  return (
    <div className="side">
      <Link to="/" className="brand">
        <img src="/favicon.svg" alt="" />
        Stepwell
      </Link>
      <button type="button" className="find" onClick={openPalette}>
        <span>Find…</span> <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Main">
        <Link to="/" activeOptions={{ exact: true }}>
          <HomeIcon /> Home
        </Link>
        <Link to="/workflows">
          <WorkflowIcon /> Workflows
        </Link>
        <Link to="/runs">
          <RunsIcon /> Runs
        </Link>
        <Link to="/approvals">
          <ApprovalIcon /> Approvals
          {mine.length > 0 && (
            <span className="count" role="img" aria-label={`${mine.length} wait for you`}>
              {mine.length}
            </span>
          )}
        </Link>
        <Link to="/settings">
          <SettingsIcon /> Settings
        </Link>
      </nav>
      <Foot />
    </div>
  );
}

function Foot() {
  const who = useQuery(me);
  const navigate = useNavigate();
  const connected = useConnected();
  const signOut = async () => {
    await api("/sign-out", { method: "POST" });
    queries.clear();
    forgetAnswers();
    await navigate({ to: "/signed-out" });
  };
  return (
    <div className="side-foot">
      <span className="live" data-on={connected} role="status">
        {connected ? "Live" : "Connecting…"}
      </span>
      <button type="button" className="link keys-link" onClick={openKeyHelp}>
        Keys
      </button>
      <ThemeChoice />
      {who.data && (
        <div className="row">
          <span className="grow">
            <strong>{who.data.user}</strong>
            <br />
            <span className="dim">{who.data.organisation.name}</span>
          </span>
          <button type="button" className="link" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      )}
    </div>
  );
}

export function ThemeChoice() {
  const { choice } = useTheme();
  return (
    <label className="row">
      <span className="dim">Colours</span>
      <select value={choice} onChange={(event) => setTheme(event.target.value as Choice)}>
        <option value="system">system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}
