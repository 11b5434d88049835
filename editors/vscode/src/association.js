// Which files are workflows, and the schema they are checked against. Knows nothing of VS Code.

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { execFile } = require("node:child_process");

/** The address under which the YAML extension asks for the schema. */
const SCHEMA = "stepwell://schema/all.json";
const BUNDLED = path.join(__dirname, "..", "schemas", "stepwell.json");
const OWN = /\.stepwell\.(ya?ml|json)$/;
const PATIENCE = 5_000;

/** A pattern as a regular expression: `*` and `?` stay in one folder, `**` does not. */
function expression(pattern) {
  let text = "";
  for (let i = 0; i < pattern.length; i += 1) {
    const c = pattern[i];
    if (pattern.startsWith("**/", i)) {
      text += "(?:.*/)?";
      i += 2;
    } else if (pattern.startsWith("**", i)) {
      text += ".*";
      i += 1;
    } else if (c === "*") {
      text += "[^/]*";
    } else if (c === "?") {
      text += "[^/]";
    } else {
      text += c.replace(/[.+^${}()|[\]\\]/g, "\\$&");
    }
  }
  return new RegExp(`(?:^|/)${text}$`);
}

/** Whether a file is a workflow: by its name, or because the setting names it. */
function isWorkflow(file, patterns = []) {
  const plain = file.replaceAll("\\", "/");
  return OWN.test(plain) || patterns.some((pattern) => expression(pattern.replace(/^\.?\//, "")).test(plain));
}

/** The schema of the installed binary, which fits its version; else the one that came with the extension. */
async function schema(binary) {
  const bundled = () => fs.promises.readFile(BUNDLED, "utf8");
  return new Promise((resolve) => {
    execFile(binary, ["schema"], { timeout: PATIENCE, maxBuffer: 16 << 20 }, (error, out) => {
      resolve(error ? bundled() : out);
    });
  });
}

module.exports = { SCHEMA, BUNDLED, isWorkflow, schema };
