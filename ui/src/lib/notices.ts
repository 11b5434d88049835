// Browser notifications for the signed-in user: only with permission, and only while the page is in the background.
import { useState } from "react";
import type { Approval } from "../api/queries";
import type { Notice } from "../live/stream";

export function showNotice(notice: Notice): void {
  if (!("Notification" in window) || Notification.permission !== "granted" || !document.hidden) return;
  // A phone's browser shows notifications only through a service worker, which this page does not have.
  try {
    const { title, body, tag, path } = contentOf(notice);
    const shown = new Notification(title, { body, tag });
    shown.onclick = () => {
      window.focus();
      window.location.assign(path);
    };
  } catch {
    return;
  }
}

/** The content and target of a notification. One question has one notification, even if it is sent again. */
export function contentOf(notice: Notice): { title: string; body: string; tag: string; path: string } {
  const run = `/runs/${encodeURIComponent(notice.run_id)}`;
  const asks = notice.event === "gate_opened" || notice.event === "gate_escalated";
  return {
    title: notice.title,
    body: notice.text,
    tag: [notice.run_id, notice.step ?? "", asks ? "asks" : notice.event].join(" "),
    path: asks ? "/approvals" : notice.step ? `${run}?step=${encodeURIComponent(notice.step)}` : run,
  };
}

/** The question in one line. */
export function question(approval: Approval): string {
  const asks = approval.asks as { message?: unknown } | null;
  if (typeof asks?.message === "string" && asks.message) return asks.message;
  return approval.kind === "verdict" ? `Did the call of ${approval.step} happen?` : `May ${approval.step} continue?`;
}

export function useNoticePermission(): { state: NotificationPermission | "missing"; ask: () => void } {
  const [state, setState] = useState<NotificationPermission | "missing">(
    "Notification" in window ? Notification.permission : "missing",
  );
  return { state, ask: () => void Notification.requestPermission().then(setState) };
}
