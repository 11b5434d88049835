// Readable messages for failures, and hints how to fix them.
import { Problem } from "../api/client";

export interface Said {
  title: string;
  hint?: string;
  requestId?: string;
}

/** Hints by the server's error code. */
const HINTS: Record<string, string> = {
  unreachable: "The page continues automatically when the server is back.",
  unauthorised: "Run `stepwell login` on the server’s machine, and open the link it prints.",
  forbidden: "Ask an administrator for this right.",
  "cross-origin": "Open the dashboard at the server’s own address (see `public_url`).",
  "changed-meanwhile": "Someone else changed it first. Reload the page to see the change.",
  "other-digest": "The request has changed since it was shown. Review it again, then answer.",
  "workflow-disabled": "Enable the workflow first.",
  "rate-limited": "Wait a moment, then try again.",
  "plan-limit": "See Settings, Plan and usage.",
  unavailable: "Try again in a moment.",
  "not-ready": "Try again in a moment.",
  busy: "Try again in a moment.",
  internal: "This is a fault of the server. Its log has the details.",
  broken: "Run `stepwell doctor` on the data.",
};

export function words(error: unknown): Said {
  if (error instanceof Problem) {
    const hint = HINTS[error.code];
    return {
      title: sentence(error.message),
      ...(hint ? { hint } : {}),
      ...(error.requestId ? { requestId: error.requestId } : {}),
    };
  }
  const text = error instanceof Error ? error.message : String(error);
  return { title: sentence(text), hint: "This is a fault of the page. Reload it; if it persists, report it." };
}

/** Details start in lower case, as parts of a sentence do. */
function sentence(text: string): string {
  const whole = text.trim();
  if (!whole) return "Something went wrong.";
  const begun = whole.charAt(0).toUpperCase() + whole.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
