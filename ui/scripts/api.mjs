// Writes src/api/schema.ts from the server's description of its API.
// `npm run api` reads openapi.json here, which `stepwell schema api` prints; with the address of a server's
// /openapi.json as its argument it fetches that first.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const from = process.argv[2];
if (from) {
  const answer = await fetch(from);
  if (!answer.ok) throw new Error(`${from} answered ${answer.status}`);
  await writeFile("openapi.json", `${JSON.stringify(await answer.json(), null, 1)}\n`);
}
const description = JSON.parse(await readFile("openapi.json", "utf8"));
// Every call has the same error responses, and the client knows them: omitting them cuts the file to a third.
for (const calls of Object.values(description.paths)) {
  for (const call of Object.values(calls)) {
    for (const status of Object.keys(call.responses ?? {})) if (status >= "400") delete call.responses[status];
  }
}
delete description.components.responses;
delete description.components.examples;
const types = astToString(await openapiTS(description));
await writeFile(
  "src/api/schema.ts",
  `// Made by \`npm run api\` from openapi.json: the types of the server's API. Not edited by hand.\n\n${types}`,
);
