// The workflow that the home page creates: it needs no network, and shows a wait, a question and an output.
import { api } from "../api/client";
import { queries } from "../api/queries";

export const SAMPLE_NAME = "welcome";

export const SAMPLE = `# A first workflow: four steps, one after the other. Change it as you like.
name: welcome
description: Greets someone, sleeps for three seconds, asks you, and reports when you answered
input_schema:
  type: object
  properties:
    name: {type: string, title: Name, default: world, description: Who is greeted}
tasks:
  greet:
    tool: echo
    args: {text: "Hello, {{input.name ?? 'world'}}!"}
  nap:
    needs: greet
    sleep: 3s
  ask:
    needs: nap
    approval:
      message: "Continue? So far I have: {{tasks.greet.body.text}}"
      timeout: 1d
  tell:
    needs: ask
    tool: now
output:
  said: "{{tasks.greet.body.text}}"
  answered_at: "{{tasks.tell.body.time}}"
`;

/** Creates the sample unless it exists, starts it, and returns the run's id. */
export async function startSample(): Promise<string> {
  await api(`/workflows/${SAMPLE_NAME}`, { method: "PUT", text: SAMPLE });
  const started = await api<{ run_id: string }>(`/workflows/${SAMPLE_NAME}/trigger`, {
    method: "POST",
    body: { name: "world" },
  });
  await queries.invalidateQueries({ queryKey: ["workflows"] });
  return started.run_id;
}
