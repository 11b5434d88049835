// Renders the reference from the OpenAPI description. No libraries, no external resources; text is never parsed as HTML.
"use strict";

function node(name, content, attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  for (const part of [content].flat()) made.append(part ?? "");
  return made;
}

function nameOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.items) return `list of ${nameOf(schema.items)}`;
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return either.map(nameOf).join(" or ");
  return [schema.type ?? "any"].flat().join(" or ");
}

function table(heads, rows) {
  const line = (cells, tag) => node("tr", cells.map((cell) => node(tag, cell)));
  return node("table", [line(heads, "th"), ...rows.map((row) => line(row, "td"))]);
}

function call(method, path, operation) {
  const parts = [node("p", operation.description ?? "")];
  if (operation.parameters?.length) {
    parts.push(table(["Parameter", "In", "Type", ""], operation.parameters.map((parameter) => [
      node("code", parameter.name), parameter.in, nameOf(parameter.schema), parameter.description ?? ""])));
  }
  for (const [type, body] of Object.entries(operation.requestBody?.content ?? {})) {
    parts.push(node("p", ["Body ", node("code", type), ": ", nameOf(body.schema)]));
  }
  parts.push(table(["Answer", "", ""], Object.entries(operation.responses).map(([status, answer]) => [
    status, answer.description ?? "", Object.values(answer.content ?? {}).map((body) => nameOf(body.schema)).join(", ")])));
  const head = node("summary", [node("span", method.toUpperCase(), { class: "method" }), node("code", path), " ",
    operation.summary ?? ""]);
  return node("details", [head, ...parts], { "data-text": `${method} ${path} ${operation.summary ?? ""}`.toLowerCase() });
}

async function draw() {
  const api = await (await fetch("/openapi.json")).json();
  document.getElementById("about").prepend(`${api.info.title} ${api.info.version}. ${api.info.description ?? ""} `);
  const calls = document.getElementById("calls");
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const group = operation.tags?.[0] ?? "other";
      groups.set(group, [...(groups.get(group) ?? []), call(method, path, operation)]);
    }
  }
  for (const [group, list] of groups) calls.append(node("section", [node("h2", group), ...list]));
  const schemas = document.getElementById("schemas");
  for (const [name, schema] of Object.entries(api.components?.schemas ?? {})) {
    schemas.append(node("details", [node("summary", node("code", name)), node("pre", JSON.stringify(schema, null, 2))],
      { id: name }));
  }
  document.getElementById("find").addEventListener("input", (event) => {
    const text = event.target.value.toLowerCase();
    for (const shown of calls.querySelectorAll("details")) shown.hidden = !shown.dataset.text.includes(text);
  });
}

draw();
