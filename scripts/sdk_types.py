#!/usr/bin/env python3
"""Writes the types of what the API returns for the SDKs for Python and TypeScript, from its OpenAPI description.

The SDKs have the schemas that their methods return, and those that these refer to, under the same names. The SDK for
Rust has its own types; a test compares them with the same description.

Usage: stepwell schema api | sdk_types.py [--check]     (--check: only fails if the files differ)
"""

import json
import keyword
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = os.path.join(ROOT, "sdk/python/src/stepwell/_schema.py")
TYPESCRIPT = os.path.join(ROOT, "sdk/typescript/src/schema.ts")
WIDTH = 120

# What the methods of the clients return.
ROOTS = [
    "Approval", "Run", "RunSummary", "ScheduleSummary", "Secret", "StreamEvent", "Triggered", "Workflow",
    "WorkflowSummary",
    # What is wrong with a request. Python has a class for it.
    "Fault",
]
# Names that say more to a caller than those of the description.
NAMES = {"ScheduleSummary": "Schedule", "StreamEvent": "Event", "StreamEndEvent": "EndEvent", "Triggered": "Started"}

MADE = "Made by scripts/sdk_types.py from the description of the API. Not edited by hand."


def name_of(reference):
    name = reference.rsplit("/", 1)[1]
    return NAMES.get(name, name)


def references(schema):
    """The names of all schemas that a schema refers to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rsplit("/", 1)[1]
        for name, inner in schema.items():
            # A discriminator repeats the members of its union.
            if name not in ("discriminator", "example", "examples"):
                yield from references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from references(inner)


def ordered(schemas):
    """The schemas to write, each behind those that it refers to."""
    done = {}

    def visit(name):
        if name not in done:
            done[name] = None
            for other in references(schemas[name]):
                visit(other)
            # Behind the others: a dictionary keeps the order of insertion.
            del done[name]
            done[name] = schemas[name]

    for root in ROOTS:
        visit(root)
    return done


def members(schema):
    """The schemas that a record extends, and its own properties with whether they are required."""
    bases, properties = [], []
    for part in schema.get("allOf", [schema]):
        if "$ref" in part:
            bases.append(name_of(part["$ref"]))
        required = part.get("required", [])
        properties += [(name, inner, name in required) for name, inner in part.get("properties", {}).items()]
    return bases, properties


def is_record(schema):
    return "properties" in schema or "allOf" in schema


def alternatives(schema):
    """The types of a union or of a nullable type; None stands for null."""
    if "oneOf" in schema:
        return [None if one == {"type": "null"} else one for one in schema["oneOf"]]
    if isinstance(schema.get("type"), list):
        return [None if one == "null" else {**schema, "type": one} for one in schema["type"]]
    return None


def text_of(schema):
    """What is said about a schema, or about what it refers to in this place."""
    found = schema.get("description", "")
    for one in schema.get("oneOf", []):
        found = found or ("$ref" in one and one.get("description", "")) or ""
    found = " ".join(found.split())
    return "Deprecated. " + found if schema.get("deprecated") else found


class Python:
    """One TypedDict per record. A base class has the required fields, because Python 3.10 has no `NotRequired`."""

    def type(self, schema):
        several = alternatives(schema)
        if several is not None:
            return " | ".join("None" if one is None else self.type(one) for one in several)
        if "$ref" in schema:
            return name_of(schema["$ref"])
        if "enum" in schema or "const" in schema:
            listed = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(json.dumps(one) for one in listed)}]"
        kind = schema.get("type")
        if kind == "array":
            return f"list[{self.type(schema['items'])}]"
        if kind == "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {self.type(inner) if isinstance(inner, dict) else 'Any'}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", None: "Any"}[kind]

    def write(self, schemas):
        lines = [f'"""{MADE}"""', "", "from __future__ import annotations", ""]
        lines += ["from typing import Any, Literal, TypedDict, Union", ""]
        for name, schema in schemas.items():
            shown = NAMES.get(name, name)
            if is_record(schema):
                lines += ["", "", *self.record(shown, schema), "", ""]
            else:
                lines += self.alias(shown, schema)
        # Two empty lines around classes, however many were asked for.
        return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).rstrip() + "\n"

    def alias(self, name, schema):
        several = alternatives(schema)
        if several is not None and all(one is not None and "$ref" in one for one in several):
            found = f"{name} = Union[{', '.join(self.type(one) for one in several)}]"
        else:
            found = f"{name} = {self.type(schema)}"
        note = text_of(schema)
        return ([f"#: {line}" for line in wrapped(note, 3)] if note else []) + self.fitted(found)

    def fitted(self, line):
        """A long list over several lines, as formatters write it."""
        if len(line) <= WIDTH:
            return [line]
        head, listed = line[:-1].split("[", 1)
        return [f"{head}[", *(f"    {part}" for part in filled(listed, WIDTH - 4)), "]"]

    def record(self, name, schema):
        bases, properties = members(schema)
        required = [one for one in properties if one[2]]
        optional = [one for one in properties if not one[2]]
        if required and (optional or any(keyword.iskeyword(one[0]) for one in required)):
            base = f"_{name}"
            yield from self.fields(base, bases, required, total=True)
            yield ""
            yield ""
            yield from self.fields(name, [base], optional, total=False, note=text_of(schema))
        else:
            yield from self.fields(name, bases, properties, total=bool(required), note=text_of(schema))

    def fields(self, name, bases, properties, *, total, note=""):
        if any(keyword.iskeyword(one[0]) for one in properties):
            # A field whose name is a keyword cannot be written in a class.
            yield f"{name} = TypedDict("
            yield f'    "{name}",'
            yield "    {"
            for field, schema, _ in properties:
                yield f'        "{field}": "{self.type(schema)}",'
            yield "    },"
            yield ")"
            return
        inherits = ", ".join(bases or ["TypedDict"]) + ("" if total else ", total=False")
        yield f"class {name}({inherits}):"
        if note:
            first, *more = wrapped(note, 10)
            yield f'    """{first}' + ("" if more else '"""')
            yield from (f"    {line}" for line in more)
            if more:
                yield '    """'
            if properties:
                yield ""
        for field, schema, _ in properties:
            about = text_of(schema)
            if about:
                yield from (f"    #: {line}" for line in wrapped(about, 7))
            yield f"    {field}: {self.type(schema)}"
        if not properties and not note:
            yield "    pass"


class TypeScript:
    """One interface per record."""

    def type(self, schema):
        several = alternatives(schema)
        if several is not None:
            return " | ".join("null" if one is None else self.type(one) for one in several)
        if "$ref" in schema:
            return name_of(schema["$ref"])
        if "enum" in schema or "const" in schema:
            return " | ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
        kind = schema.get("type")
        if kind == "array":
            inner = self.type(schema["items"])
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        if kind == "object":
            inner = schema.get("additionalProperties")
            return f"Record<string, {self.type(inner) if isinstance(inner, dict) else 'any'}>"
        return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", None: "any"}[kind]

    def write(self, schemas):
        lines = [f"// {MADE}", ""]
        for name, schema in schemas.items():
            shown = NAMES.get(name, name)
            lines += self.about(text_of(schema), "")
            lines += self.record(shown, schema) if is_record(schema) else self.alias(shown, schema)
            lines.append("")
        return "\n".join(lines).rstrip() + "\n"

    def alias(self, name, schema):
        line = f"export type {name} = {self.type(schema)};"
        if len(line) <= WIDTH:
            return [line]
        parts = self.type(schema).split(" | ")
        return [f"export type {name} =", *(f"  | {part}" for part in parts[:-1]), f"  | {parts[-1]};"]

    def record(self, name, schema):
        bases, properties = members(schema)
        extends = f" extends {', '.join(bases)}" if bases else ""
        yield f"export interface {name}{extends} {{"
        for field, inner, is_required in properties:
            yield from self.about(text_of(inner), "  ")
            yield f"  {field}{'' if is_required else '?'}: {self.type(inner)};"
        yield "}"

    def about(self, note, indent):
        if not note:
            return []
        if len(indent) + len(note) + 7 <= WIDTH:
            return [f"{indent}/** {note} */"]
        return [f"{indent}/**", *(f"{indent} * {line}" for line in wrapped(note, len(indent) + 3)), f"{indent} */"]


def wrapped(text, taken):
    return textwrap.wrap(text, WIDTH - taken, break_long_words=False, break_on_hyphens=False)


def filled(listed, width):
    """The parts of a list in lines of this width, each with its comma."""
    line = ""
    for part in listed.split(", "):
        if line and len(line) + len(part) + 2 > width:
            yield line
            line = ""
        line += f"{' ' if line else ''}{part},"
    yield line


def main():
    schemas = ordered(json.load(sys.stdin)["components"]["schemas"])
    differ = []
    for path, text in ((PYTHON, Python().write(schemas)), (TYPESCRIPT, TypeScript().write(schemas))):
        there = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                there = file.read()
        if there == text:
            continue
        differ.append(os.path.relpath(path, ROOT))
        if "--check" not in sys.argv[1:]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if differ and "--check" in sys.argv[1:]:
        sys.exit(f"{' and '.join(differ)}: run `stepwell schema api | python3 scripts/sdk_types.py`")


main()
