// Draws a workflow with the `stepwell` binary. Knows nothing of VS Code.

"use strict";

const { spawn } = require("node:child_process");

const PATIENCE = 10_000;

/**
 * Draws the text of a definition, saved or not.
 * @returns {Promise<{svg: string} | {problem: string}>}
 */
function draw(binary, text) {
  return new Promise((resolve) => {
    const child = spawn(binary, ["graph", "-", "--format", "svg"], { timeout: PATIENCE });
    let out = "";
    let problem = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (out += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk) => (problem += chunk));
    child.on("error", (error) => {
      const hint = error.code === "ENOENT" ? `; set \`stepwell.path\`` : "";
      resolve({ problem: `${binary} cannot be started: ${error.message}${hint}` });
    });
    // The binary may end before it has read all of its input.
    child.stdin.on("error", () => {});
    child.stdin.end(text);
    child.on("close", (code) => {
      resolve(code === 0 ? { svg: out } : { problem: problem.trim() || `${binary} ended with ${code}` });
    });
  });
}

function escape(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (c) => entities[c]);
}

/** The page of the preview. The drawing is an image, so nothing in it can run. */
function page(drawing) {
  const body = drawing.svg
    ? `<img alt="Graph of the workflow" src="data:image/svg+xml;base64,${Buffer.from(drawing.svg).toString("base64")}">`
    : `<pre>${escape(drawing.problem)}</pre>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>
body { margin: 1rem; background: #fff; color: #1c1c1c; }
img { max-width: 100%; }
pre { white-space: pre-wrap; font-family: var(--vscode-editor-font-family, monospace); }
</style>
<title>Workflow</title>
</head>
<body>${body}</body>
</html>
`;
}

module.exports = { draw, page };
