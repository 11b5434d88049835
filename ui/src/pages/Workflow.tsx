// Workflow: still to come.
export default function Workflow() {
  return <h1>Workflow</h1>;
}
