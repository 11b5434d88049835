// Workflows: still to come.
export default function Workflows() {
  return <h1>Workflows</h1>;
}
