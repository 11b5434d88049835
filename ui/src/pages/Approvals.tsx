// Approvals: still to come.
export default function Approvals() {
  return <h1>Approvals</h1>;
}
