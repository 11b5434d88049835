// `npm run e2e`: the tests in a browser, one file after the other.
import { readdirSync } from "node:fs";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const files = readdirSync("tests")
  .filter((name) => name.endsWith(".spec.ts"))
  .map((name) => `tests/${name}`);
const tests = run({ files, concurrency: 1, timeout: 15 * 60_000 });
tests.on("test:fail", () => {
  process.exitCode = 1;
});
tests.compose(new spec()).pipe(process.stdout);
