#!/usr/bin/env python3
"""Lists the stable codes, routes, settings and metrics in the code, and fails if a test mentions one of them nowhere.

A mention is all that this can see: whether the test proves anything is for its reader. Text of the documents does not
count. `<!-- tested: NAME -->` in a document names the test of the promise before it, and that test must exist; so must
every test that docs/conformance names, and the tests in the last column of the tables of docs/security.md.
Commands are not listed yet. The list is written to target/coverage.md.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
# What no test mentions yet. An entry that is mentioned, or no longer in the code, must be removed.
GAPS = set("""
cannot_wait no_randomness tls_unavailable unknown_kind
stepwell_live_dropped_total stepwell_notifications_total stepwell_quarantined_total stepwell_tasks_panicked_total
live_streams_per_organisation
""".split())


def read(pattern):
    paths = glob.glob(os.path.join(ROOT, pattern), recursive=True)
    return {os.path.relpath(path, ROOT): open(path, errors="replace").read() for path in paths if os.path.isfile(path)}


def split():
    """The code and the tests, by file. Unit tests are at the end of their file."""
    code, tests = {}, read("crates/*/tests/**/*")
    for path, text in read("crates/*/src/**/*.rs").items():
        whole = path.endswith("/tests.rs") or "/tests/" in path or text.startswith("//! Tests of")
        before, mark, after = ("", "", text) if whole else text.partition("#[cfg(test)]\nmod tests {")
        code[path] = before
        if whole or mark:
            tests[path] = after
    return code, tests


def items(code):
    """(kind, name) of everything that needs a test."""
    def found(pattern, under):
        text = "\n".join(text for path, text in code.items() if path.startswith(under))
        return set(re.findall(pattern, text, re.M))

    problems = found(r'(?:Problem::new\([^;{]*?|bad_request\(\s*|StatusCode::\w+, )"([a-z-]+)"', "crates/server/src")
    problems |= found(r'=> "([a-z-]+)",', "crates/server/src/error.rs")
    problems |= found(r'=> "([a-z-]+)",', "crates/server/src/guard.rs")
    read_field = r'fields\s*\.(?:get|take|set|list|section|named)\(\s*"(\w+)"'
    kinds = {
        "problem": problems,
        "step error": found(r'Failure::(?:new|retryable)\(\s*"([a-z_]+)"', "crates/"),
        "fault": found(r'^    [A-Z_]+ "([a-z-]+)"', "crates/formats/src/code.rs"),
        "route": found(r'utoipa::path\(\s*\w+,\s*path = "([^"]+)"', "crates/server/src"),
        "setting": found(read_field, "crates/server/src/config/"),
        "metric": found(r'"(stepwell_[a-z_]+)"', "crates/"),
    }
    for kind, names in kinds.items():
        if not names:
            sys.exit(f"no {kind} was found in the code: the pattern for it is out of date")
        yield from ((kind, name) for name in sorted(names))


def pattern(kind, name):
    if kind == "route":
        pieces = [re.escape(piece) for piece in re.split(r"\{[^}]*\}", name)]
        return re.compile(r"[^\n]*?".join(pieces) + r"(?![\w/-])")
    # What Prometheus appends to the name of a histogram.
    suffix = "(?:_(?:sum|count|bucket))?" if kind == "metric" else ""
    return re.compile(r"(?<![\w-])" + re.escape(name) + suffix + r"(?![\w-])")


def unproven():
    """Faults of docs/conformance: tests that it names and that do not exist, and promises without one.

    A test is named as `FILE::NAME`, where the file is relative to crates/, or begins with ui/ or sdk/.
    """
    for path, text in sorted(read("docs/conformance/*.md").items()):
        for file, name in re.findall(r"`([\w./-]+\.(?:rs|ts))::([^`]+)`", text):
            outside = file.startswith(("ui/", "sdk/"))
            at = file if outside else f"crates/{file}"
            wanted = f'test("{name}"' if outside else f"fn {name}("
            if wanted not in read(at).get(at, ""):
                yield f"{path}: there is no test {file}::{name}"
        for row in re.findall(r"^\| (?!--- )(.+) \|$", text, re.M):
            cells = re.split(r"(?<!\\) \| ", f"{row} ")
            if not re.search(r"::|\bplanned\b|^test ?$", cells[1]):
                yield f"{path}: no test is named for: {cells[0]}"


def main():
    code, tests = split()
    rows, faults, seen = [], [], set()
    for kind, name in items(code):
        seen.add(name)
        at = pattern(kind, name)
        place = next((path for path in sorted(tests) if at.search(tests[path])), None)
        rows.append(f"| {kind} | `{name}` | {place or 'none'} |")
        if place is None and name not in GAPS:
            faults.append(f"{kind} {name}: no test mentions it")
        if place and name in GAPS:
            faults.append(f"{kind} {name}: {place} mentions it now; remove it from GAPS")
    faults += [f"{name}: no longer in the code; remove it from GAPS" for name in sorted(GAPS - seen)]
    for path, text in sorted(read("docs/*.md").items()):
        promised = re.findall(r"<!-- tested: (\w+) -->", text)
        # Each row of the tables of threats ends with the tests that prove it.
        threats = [row for row in text.split("\n") if row.startswith("| ")] if path == "docs/security.md" else []
        for row in threats[1:]:
            named = re.findall(r"`(\w+_\w+)`", row.rstrip(" |").rpartition(" | ")[2])
            promised += named
            if not named and not row.startswith(("| ---", "| threat |")):
                faults.append(f"{path}: no test is named for: {row[:80]}")
        for name in promised:
            place = next((test for test in sorted(tests) if re.search(rf"\bfn {name}\(", tests[test])), None)
            rows.append(f"| promise of {path} | `{name}` | {place or 'none'} |")
            if place is None:
                faults.append(f"{path}: there is no test {name}")
    faults += unproven()
    os.makedirs(TARGET, exist_ok=True)
    with open(os.path.join(TARGET, "coverage.md"), "w") as out:
        out.write("\n".join(["| what | name | first test that mentions it |", "| --- | --- | --- |", *rows]) + "\n")
    print("\n".join(faults) or f"{len(rows)} listed, {len(GAPS)} known gaps")
    sys.exit(bool(faults))


main()
