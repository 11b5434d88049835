// The API reference: RapiDoc shows the server's description, with an example of each call in three languages.
import "./reference.css";
import { type Description, withSamples } from "./samples";
import { adoptStyles, stylesWithoutAttributes } from "./styles";

interface Viewer extends HTMLElement {
  loadSpec(description: Description): Promise<void>;
  updateComplete: Promise<unknown>;
}

const SETTINGS = {
  "render-style": "focused",
  "schema-style": "table",
  "default-schema-tab": "schema",
  "schema-description-expanded": "true",
  "show-header": "false",
  "show-method-in-nav-bar": "as-colored-text",
  "allow-spec-url-load": "false",
  "allow-spec-file-load": "false",
  "allow-server-selection": "false",
  "allow-authentication": "true",
  "persist-auth": "false",
  "fill-request-fields-with-example": "true",
  // No outside assets.
  "load-fonts": "false",
  "regular-font": "system-ui, sans-serif",
  "mono-font": "ui-monospace, monospace",
  "nav-item-spacing": "compact",
};

async function show(): Promise<void> {
  stylesWithoutAttributes();
  await import("rapidoc");
  const viewer = document.createElement("rapi-doc") as Viewer;
  for (const [name, value] of Object.entries(SETTINGS)) viewer.setAttribute(name, value);
  viewer.setAttribute("theme", matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.body.append(viewer);
  const answer = await fetch("/openapi.json");
  await viewer.loadSpec(withSamples((await answer.json()) as Description, location.origin));
  await viewer.updateComplete;
  if (viewer.shadowRoot) adoptStyles(viewer.shadowRoot);
}

show().catch((error: unknown) => {
  const told = document.createElement("p");
  told.textContent = `The description of the API cannot be shown: ${String(error)}`;
  document.body.append(told);
});
