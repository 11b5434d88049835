// A small MCP server on standard input and output. Each line of the file in its first argument is a tool: its name and
// description. When the file changes, the server exits, like one that is replaced.
import { readFileSync, watchFile } from "node:fs";
import { createInterface } from "node:readline";

const file = process.argv[2];
const tools = readFileSync(file, "utf8")
  .split("\n")
  .map((line) => {
    const [name, ...words] = line.split(" ");
    return {
      name,
      description: words.join(" "),
      inputSchema: { type: "object", properties: { text: { type: "string" } } },
    };
  });
watchFile(file, { interval: 100 }, () => process.exit(0));

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "notes", version: "1" },
  }),
  "tools/list": () => ({ tools }),
  ping: () => ({}),
};
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  say(answer ? { id, result: answer(params ?? {}) } : { id, error: { code: -32601, message: `no method ${method}` } });
});
lines.on("close", () => process.exit(0));
