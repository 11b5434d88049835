// What is selected: some steps, or one connection.

export interface Selection {
  steps: ReadonlySet<string>;
  edge: string | null;
}

export const NOTHING: Selection = { steps: new Set(), edge: null };

export function only(step: string | undefined): Selection {
  return step === undefined ? NOTHING : { steps: new Set([step]), edge: null };
}
