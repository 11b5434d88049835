// The frame around every page: navigation and who is signed in.
import { Link, Outlet } from "@tanstack/react-router";

export function Frame() {
  return (
    <>
      <nav aria-label="Main">
        <Link to="/">Home</Link> <Link to="/workflows">Workflows</Link> <Link to="/runs">Runs</Link>{" "}
        <Link to="/approvals">Approvals</Link> <Link to="/settings">Settings</Link>
      </nav>
      <main>
        <Outlet />
      </main>
    </>
  );
}
