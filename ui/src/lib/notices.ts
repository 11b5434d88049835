// Browser notifications for approvals that come in while the page is in the background. Only when the person allowed them.
import { useEffect, useRef, useState } from "react";
import type { Approval } from "../api/queries";

export function useNotices(approvals: Approval[] | undefined): void {
  const known = useRef<Set<string> | undefined>(undefined);
  useEffect(() => {
    if (!approvals) return;
    const mine = approvals.filter((one) => one.mine);
    const before = known.current;
    known.current = new Set(mine.map((one) => one.id));
    // What was there when the page was opened is no news.
    if (!before || !("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
    for (const one of mine.filter((one) => !before.has(one.id))) {
      const notice = new Notification(`${one.workflow} asks`, { body: question(one), tag: one.id });
      notice.onclick = () => {
        window.focus();
        window.location.assign("/approvals");
      };
    }
  }, [approvals]);
}

/** What is asked, in one line. */
export function question(approval: Approval): string {
  const asks = approval.asks as { message?: unknown } | null;
  if (typeof asks?.message === "string" && asks.message) return asks.message;
  return approval.kind === "verdict" ? `Did the call of ${approval.step} happen?` : `May ${approval.step} go on?`;
}

export function useNoticePermission(): { state: NotificationPermission | "missing"; ask: () => void } {
  const [state, setState] = useState<NotificationPermission | "missing">(
    "Notification" in window ? Notification.permission : "missing",
  );
  return { state, ask: () => void Notification.requestPermission().then(setState) };
}
