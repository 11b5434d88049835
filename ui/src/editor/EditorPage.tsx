// The editor: still to come.
export default function EditorPage({ name }: { name?: string }) {
  return <h1>{name ?? "A new workflow"}</h1>;
}
