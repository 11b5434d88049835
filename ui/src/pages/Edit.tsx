// The two addresses of the editor: a new workflow, and an existing one.
import { useParams } from "@tanstack/react-router";
import EditorPage from "../editor/EditorPage";

export function NewWorkflow() {
  return <EditorPage />;
}

export function EditWorkflow() {
  const { name } = useParams({ from: "/workflows/$name/edit" });
  return <EditorPage key={name} name={name} />;
}
