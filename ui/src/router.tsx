// Maps addresses to pages. Pages other than the frame are loaded on first use.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { me, queries, type RunFilter } from "./api/queries";
import { Frame } from "./components/Frame";
import { NotFound, Trouble } from "./components/Trouble";
import { allows } from "./lib/rights";

/** Picks only these keys, and only strings: an address may contain anything. */
function texts(search: Record<string, unknown>, names: string[]): Record<string, string> {
  const kept = names.flatMap((name) => {
    const value = search[name];
    return value === undefined || value === null || value === "" ? [] : [[name, String(value)] as const];
  });
  return Object.fromEntries(kept);
}

function runSearch(search: Record<string, unknown>): RunFilter {
  const filter: RunFilter = texts(search, [
    "status",
    "workflow",
    "q",
    "label",
    "created_by",
    "since",
    "until",
    "parent",
  ]);
  return search.tests === true ? { ...filter, tests: true } : filter;
}

const root = createRootRoute({ component: Frame, errorComponent: Trouble, notFoundComponent: NotFound });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/Home")),
});
const workflows = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  component: lazyRouteComponent(() => import("./pages/Workflows")),
});
const newWorkflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/new",
  component: lazyRouteComponent(() => import("./pages/Edit"), "NewWorkflow"),
});
const workflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$name",
  validateSearch: (search: Record<string, unknown>): { view?: string } => texts(search, ["view"]),
  component: lazyRouteComponent(() => import("./pages/Workflow")),
});
const edit = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$name/edit",
  component: lazyRouteComponent(() => import("./pages/Edit"), "EditWorkflow"),
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  validateSearch: runSearch,
  component: lazyRouteComponent(() => import("./pages/Runs")),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/runs/$run",
  validateSearch: (search: Record<string, unknown>): { step?: string; view?: string } =>
    texts(search, ["step", "view"]),
  component: lazyRouteComponent(() => import("./pages/Run")),
});
const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  validateSearch: (search: Record<string, unknown>): { ask?: string } => texts(search, ["ask"]),
  component: lazyRouteComponent(() => import("./pages/Approvals")),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  beforeLoad: () => {
    const grants = queries.getQueryData(me.queryKey)?.grants;
    // Before the user is known, users: an administrator may see them, and others are told.
    const part = grants && !allows(grants, "admin") ? "keys" : "users";
    throw redirect({ to: "/settings/$part", params: { part } });
  },
});
const settingsPart = createRoute({
  getParentRoute: () => root,
  path: "/settings/$part",
  component: lazyRouteComponent(() => import("./pages/Settings")),
});
const signIn = createRoute({
  getParentRoute: () => root,
  path: "/signed-out",
  component: lazyRouteComponent(() => import("./pages/SignedOut")),
});

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    workflows,
    newWorkflow,
    workflow,
    edit,
    runs,
    run,
    approvals,
    settings,
    settingsPart,
    signIn,
  ]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
