// SignedOut: still to come.
export default function SignedOut() {
  return <h1>SignedOut</h1>;
}
