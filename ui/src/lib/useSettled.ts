// False for a moment after something has appeared or changed, so that a click meant for what was there before is lost.
import { useEffect, useState } from "react";

const PAUSE = 600;

export function useSettled(what: string): boolean {
  const [settled, setSettled] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setSettled(what), PAUSE);
    return () => clearTimeout(timer);
  }, [what]);
  return settled === what;
}
