// A client of a language server over its standard input and output, as an editor is one.

"use strict";

const { spawn } = require("node:child_process");

const PATIENCE = 20_000;

class LanguageServer {
  #child;
  #rest = Buffer.alloc(0);
  #next = 1;
  #answers = new Map();
  #waiting = new Map();
  #settings;
  #schema;

  /** `schema` answers the server's own request for the address of a schema's content. */
  constructor(command, args, settings, schema) {
    this.#settings = settings;
    this.#schema = schema;
    this.#child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdout.on("data", (chunk) => this.#read(chunk));
  }

  async start() {
    const capabilities = {
      workspace: { configuration: true, didChangeConfiguration: { dynamicRegistration: true } },
      textDocument: {
        completion: { completionItem: { snippetSupport: true, documentationFormat: ["markdown"] } },
        hover: { contentFormat: ["markdown"] },
        publishDiagnostics: {},
      },
    };
    await this.request("initialize", { processId: process.pid, rootUri: null, capabilities });
    this.notify("initialized", {});
    this.notify("workspace/didChangeConfiguration", { settings: this.#settings });
  }

  /** Opens a file and returns the faults that the server finds in it. */
  open(uri, text) {
    const found = this.#published(uri);
    this.notify("textDocument/didOpen", { textDocument: { uri, languageId: "yaml", version: 1, text } });
    return found;
  }

  async complete(uri, line, character) {
    const found = await this.request("textDocument/completion", { textDocument: { uri }, position: { line, character } });
    return Array.isArray(found) ? found : found.items;
  }

  async hover(uri, line, character) {
    const found = await this.request("textDocument/hover", { textDocument: { uri }, position: { line, character } });
    const contents = found?.contents ?? "";
    return typeof contents === "string" ? contents : contents.value;
  }

  request(method, params) {
    const id = this.#next++;
    return this.#within(method, (resolve) => {
      this.#answers.set(id, resolve);
      this.#send({ jsonrpc: "2.0", id, method, params });
    });
  }

  notify(method, params) {
    this.#send({ jsonrpc: "2.0", method, params });
  }

  async stop() {
    await this.request("shutdown", null);
    this.notify("exit", null);
    this.#child.stdin.end();
  }

  #published(uri) {
    return this.#within(`the faults of ${uri}`, (resolve) => this.#waiting.set(uri, resolve));
  }

  #within(what, begin) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer: ${what}`)), PATIENCE);
      begin((value) => {
        clearTimeout(timer);
        resolve(value);
      });
    });
  }

  #send(message) {
    const body = Buffer.from(JSON.stringify(message));
    this.#child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.#child.stdin.write(body);
  }

  #read(chunk) {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = this.#rest.indexOf("\r\n\r\n");
      if (end < 0) {
        return;
      }
      const length = Number(/Content-Length: (\d+)/i.exec(this.#rest.subarray(0, end).toString())[1]);
      if (this.#rest.length < end + 4 + length) {
        return;
      }
      const body = this.#rest.subarray(end + 4, end + 4 + length).toString();
      this.#rest = this.#rest.subarray(end + 4 + length);
      this.#take(JSON.parse(body));
    }
  }

  #take(message) {
    if (message.method === undefined) {
      const answer = this.#answers.get(message.id);
      this.#answers.delete(message.id);
      answer?.(message.result);
    } else if (message.method === "textDocument/publishDiagnostics") {
      this.#waiting.get(message.params.uri)?.(message.params.diagnostics);
      this.#waiting.delete(message.params.uri);
    } else if (message.id !== undefined) {
      this.#send({ jsonrpc: "2.0", id: message.id, result: this.#answer(message) });
    }
  }

  /** What an editor answers to the server's own requests. */
  #answer({ method, params }) {
    if (method === "workspace/configuration") {
      return params.items.map(({ section }) => this.#settings[section] ?? {});
    }
    if (method === "custom/schema/request") {
      return this.#schema.address;
    }
    if (method === "custom/schema/content") {
      return this.#schema.content();
    }
    return null;
  }
}

module.exports = { LanguageServer };
