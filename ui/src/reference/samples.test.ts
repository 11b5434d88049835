import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Description, WITH_SDK, withSamples } from "./samples";

const released = new URL("../../../crates/server/openapi.json", import.meta.url);
const read = () => JSON.parse(readFileSync(released, "utf8")) as Description;

describe("examples of calls", () => {
  const all = Object.values(withSamples(read(), "http://127.0.0.1:7070").paths).flatMap((one) => Object.values(one));

  it("are there for every operation in three languages", () => {
    expect(all.length).toBeGreaterThan(90);
    for (const one of all)
      expect(one["x-codeSamples"]?.map((sample) => sample.label)).toEqual(["curl", "Python", "TypeScript"]);
  });

  it("use the SDK only for operations that exist", () => {
    const ids = all.map((one) => one.operationId);
    for (const id of WITH_SDK) expect(ids).toContain(id);
  });

  it("send a key where one is needed, and the example body", () => {
    const source = (id: string) => all.find((one) => one.operationId === id)?.["x-codeSamples"]?.[0]?.source;
    expect(source("triggerWorkflow")).toContain("Bearer $STEPWELL_KEY");
    expect(source("triggerWorkflow")).toContain('"name": "Ann"');
    expect(source("putWorkflow")).toContain("Content-Type: application/yaml");
    expect(source("callTrigger")).not.toContain("Bearer");
  });

  it("quote a body for the shell", () => {
    const api = { paths: { "/a": { post: { requestBody: { content: { "text/plain": { example: "it's" } } } } } } };
    expect(withSamples(api, "").paths["/a"]?.post?.["x-codeSamples"]?.[0]?.source).toContain("'it'\\''s'");
  });
});
