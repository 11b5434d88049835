// What a failure is called in front of people, and how it can be mended.
import { Problem } from "../api/client";

export interface Said {
  title: string;
  hint?: string;
  requestId?: string;
}

/** How it can be mended, by the server's code. */
const HINTS: Record<string, string> = {
  unreachable: "The page goes on by itself when the server is back.",
  unauthorised: "Run `stepwell login` where the server is, and open the link it prints.",
  forbidden: "Ask an administrator for the right that is named.",
  "cross-origin": "Open the dashboard under the address the server knows itself by.",
  "changed-meanwhile": "Somebody else was faster. Load the page again to see what they did.",
  "other-digest": "What is asked has changed since it was shown. Look at it again, then answer.",
  "workflow-disabled": "Enable the workflow first.",
  "rate-limited": "Wait a moment, then try again.",
  "plan-limit": "See Settings, Plan and usage.",
  unavailable: "Try again in a moment.",
  "not-ready": "Try again in a moment.",
  busy: "Try again in a moment.",
  internal: "This is a fault of the server: its log says more.",
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
  return { title: sentence(text), hint: "This is a fault of the page. Load it again; if it stays, tell us." };
}

/** Details begin in lower case, as parts of a sentence do. */
function sentence(text: string): string {
  const whole = text.trim();
  if (!whole) return "Something went wrong.";
  const begun = whole.charAt(0).toUpperCase() + whole.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}
