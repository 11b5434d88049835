// A short form in a dialog: fields by name, one request, and its error.
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type HTMLInputTypeAttribute, type ReactNode, useId } from "react";
import { Trouble } from "../../components/Trouble";

interface Props {
  /** Sends the form. */
  act: (data: FormData) => Promise<unknown>;
  done: () => void;
  label: string;
  children: ReactNode;
}

export function Form({ act, done, label, children }: Props) {
  const send = useMutation({ mutationFn: act, onSuccess: done });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    send.mutate(new FormData(event.currentTarget));
  };
  return (
    <form className="stack" onSubmit={submit} autoComplete="off">
      {children}
      {send.error && <Trouble error={send.error} />}
      <div className="row">
        <button type="submit" className="main" disabled={send.isPending}>
          {label}
        </button>
      </div>
    </form>
  );
}

interface TextProps {
  name: string;
  label: string;
  help?: string;
  initial?: string;
  required?: boolean;
  type?: HTMLInputTypeAttribute;
  disabled?: boolean;
}

export function Text({ name, label, help, initial, required, type = "text", disabled }: TextProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        name={name}
        type={type}
        defaultValue={initial}
        required={required}
        readOnly={disabled}
        aria-describedby={`${id}h`}
        autoComplete="off"
      />
      <span id={`${id}h`} className="small dim">
        {help}
      </span>
    </div>
  );
}

/** Text of several lines, as code. */
export function Area({ name, label, help, initial }: Pick<TextProps, "name" | "label" | "help" | "initial">) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        name={name}
        className="code"
        defaultValue={initial}
        required
        spellCheck={false}
        aria-describedby={`${id}h`}
      />
      <span id={`${id}h`} className="small dim">
        {help}
      </span>
    </div>
  );
}

export function Check({ name, label, initial = false }: { name: string; label: string; initial?: boolean }) {
  return (
    <label className="check">
      <input name={name} type="checkbox" defaultChecked={initial} /> {label}
    </label>
  );
}

export function text(data: FormData, name: string): string {
  const value = data.get(name);
  return typeof value === "string" ? value.trim() : "";
}

/** Words with commas or spaces between them. */
export function words(data: FormData, name: string): string[] {
  return text(data, name)
    .split(/[\s,]+/)
    .filter(Boolean);
}
