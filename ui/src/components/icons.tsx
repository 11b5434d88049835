// The icons of the frame, drawn as lines so that they take the colour of the text.
import type { ReactNode } from "react";

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const HomeIcon = () => (
  <Icon>
    <path d="M3 9.5 10 3.5l7 6M5 8.5v8h10v-8" />
  </Icon>
);
export const WorkflowIcon = () => (
  <Icon>
    <rect x="2.5" y="3" width="6" height="4.5" rx="1" />
    <rect x="11.5" y="12.5" width="6" height="4.5" rx="1" />
    <path d="M5.5 7.5v4.2a3 3 0 0 0 3 3h3" />
  </Icon>
);
export const RunsIcon = () => (
  <Icon>
    <path d="M3 5h9M3 10h14M7 15h10" />
  </Icon>
);
export const ApprovalIcon = () => (
  <Icon>
    <circle cx="10" cy="10" r="7.2" />
    <path d="m6.8 10.2 2.3 2.3 4.2-4.8" />
  </Icon>
);
export const SettingsIcon = () => (
  <Icon>
    <path d="M3 6h8M15 6h2M3 14h2M9 14h8" />
    <circle cx="13" cy="6" r="2" />
    <circle cx="7" cy="14" r="2" />
  </Icon>
);
