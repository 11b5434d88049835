// The frame around every page: navigation, open approvals, the signed-in user, the state of the live stream.
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect } from "react";
import { api, Problem, whenSignedOut } from "../api/client";
import { approvals, me, queries } from "../api/queries";
import { forgetAnswers } from "../lib/answered";
import { answerable } from "../lib/approvals";
import { type Choice, setTheme, useTheme } from "../lib/theme";
import { Live, useConnected } from "../live/Live";
import { ApprovalIcon, HomeIcon, RunsIcon, SettingsIcon, WorkflowIcon } from "./icons";
import { Loading } from "./Loading";
import { Trouble } from "./Trouble";

export function Frame() {
  const navigate = useNavigate();
  const away = useRouterState({ select: (state) => state.location.pathname === "/signed-out" });
  useEffect(() => whenSignedOut(() => void navigate({ to: "/signed-out" })), [navigate]);
  const who = useQuery({ ...me, enabled: !away });
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
      <div className="frame">
        <Side />
        <main className="page" id="content" tabIndex={-1}>
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
