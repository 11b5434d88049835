// Typing a value and reading it back.

import { expect, test } from "vitest";
import { flagFor, isOn, shown, typed, valueAt } from "./values";

test("values survive a round trip through text", () => {
  for (const value of ["{{input.x}}", { a: [1, "x: y"], b: null }, [], 7, true, "no"]) {
    for (const language of ["yaml", "json"] as const)
      expect(typed(shown(value, "value", language), "value")).toEqual({ value });
  }
});

test("an empty input removes the field", () => expect(typed("  ", "text")).toEqual({ value: undefined }));
test("a number is a number, or a template", () => {
  expect(typed("1.5", "number")).toEqual({ value: 1.5 });
  expect(typed("{{input.n}}", "number")).toEqual({ value: "{{input.n}}" });
  expect(typed("many", "number")).toHaveProperty("fault");
});
test("a bare template is refused with a hint", () => {
  expect(typed("{{input.x}}", "value")).toEqual({ fault: "Put a value that starts with {{ in quotes." });
  expect(typed("a: {{input.x}}", "value")).toHaveProperty("fault");
  expect(typed("a: Hello, {{input.x}}", "value")).toEqual({ value: { a: "Hello, {{input.x}}" } });
});
test("a field inside an object is found", () =>
  expect(valueAt({ approval: { message: "x" } }, ["approval", "message"])).toBe("x"));

test("a flag is written only if it is not the default", () => {
  expect([flagFor(true), flagFor(false), flagFor(true, true), flagFor(false, true)]).toEqual([
    true,
    undefined,
    undefined,
    false,
  ]);
  expect([isOn(undefined), isOn(undefined, true), isOn(false, true)]).toEqual([false, true, false]);
});
