// An on-off switch with a name.
import { Switch } from "radix-ui";

interface Props {
  label: string;
  on: boolean;
  disabled?: boolean;
  onChange: (on: boolean) => void;
}

export function Toggle({ label, on, disabled, onChange }: Props) {
  return (
    <Switch.Root
      className="switch"
      checked={on}
      disabled={disabled ?? false}
      onCheckedChange={onChange}
      aria-label={label}
    >
      <Switch.Thumb />
    </Switch.Root>
  );
}
