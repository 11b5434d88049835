// A button that asks for confirmation, says what will happen, and shows the result.
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Dialog } from "./Dialog";
import { Trouble } from "./Trouble";

interface Props {
  label: string;
  title: string;
  /** What will happen. */
  children: ReactNode;
  act: () => Promise<unknown>;
  className?: string;
  disabled?: boolean;
}

export function Confirm({ label, title, children, act, className = "danger", disabled }: Props) {
  const [open, setOpen] = useState(false);
  const doing = useMutation({ mutationFn: act, onSuccess: () => setOpen(false) });
  const start = () => {
    doing.reset();
    setOpen(true);
  };
  return (
    <>
      <button type="button" className={className} onClick={start} disabled={disabled}>
        {label}
      </button>
      {open && (
        <Dialog title={title} onClose={() => setOpen(false)}>
          {children}
          {doing.error && <Trouble error={doing.error} />}
          <div className="row">
            <button type="button" className={className} disabled={doing.isPending} onClick={() => doing.mutate()}>
              {label}
            </button>
            <button type="button" onClick={() => setOpen(false)}>
              Go back
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
