// Connects the modules to VS Code: the schema of workflow files, and the preview.

"use strict";

const vscode = require("vscode");
const { SCHEMA, isWorkflow, schema } = require("./association");
const { draw, page } = require("./preview");

/** Waits for a pause in typing before it draws again. */
const PAUSE = 300;

const setting = (name) => vscode.workspace.getConfiguration("stepwell").get(name);

async function activate(context) {
  context.subscriptions.push(vscode.commands.registerCommand("stepwell.preview", () => preview(context)));
  const yaml = vscode.extensions.getExtension("redhat.vscode-yaml");
  const api = yaml && (await yaml.activate());
  if (api?.registerContributor) {
    // Files that only the setting names; the others are in package.json.
    const wanted = (uri) => isWorkflow(vscode.Uri.parse(uri).path, setting("files"));
    api.registerContributor(
      "stepwell",
      (uri) => (wanted(uri) ? SCHEMA : undefined),
      () => schema(setting("path")),
    );
  }
}

function preview(context) {
  const document = vscode.window.activeTextEditor?.document;
  if (!document) {
    return;
  }
  const title = `Graph of ${document.uri.path.split("/").pop()}`;
  const panel = vscode.window.createWebviewPanel("stepwell.preview", title, vscode.ViewColumn.Beside, {});
  let latest = 0;
  const show = async () => {
    const drawing = ++latest;
    const html = page(await draw(setting("path"), document.getText()));
    // A later drawing may have overtaken this one.
    if (drawing === latest) {
      panel.webview.html = html;
    }
  };
  let timer;
  const changed = vscode.workspace.onDidChangeTextDocument((event) => {
    if (event.document === document) {
      clearTimeout(timer);
      timer = setTimeout(show, PAUSE);
    }
  });
  panel.onDidDispose(() => {
    latest = Infinity;
    clearTimeout(timer);
    changed.dispose();
  });
  context.subscriptions.push(panel);
  return show();
}

function deactivate() {}

module.exports = { activate, deactivate };
