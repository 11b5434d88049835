#!/usr/bin/env python3
"""Lists what the code promises (codes, routes by method, settings, metrics, commands) and fails if no test uses one of it.

A code or metric counts as used where a test has it in a string; a setting where a function of a test that is about
configuration sets it, in YAML, JSON or the environment; a route where one function of a test has both
its method and its path in strings; a command where its words follow each other in the arguments of a test. Comments and
the text of the documents do not count. Whether a test proves anything is for its reader.

In the documents of PROMISES every paragraph, item of a list and row of a table ends with `<!-- tested: NAME, … -->`, the
tests that fail if it is not kept, or with `<!-- explains -->` if it promises nothing. Rendered pages do not show it.
Other documents may have the first kind; docs/conformance and the threats of docs/security.md name tests in a column. The
list is written to target/coverage.md.
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
BINARY = os.environ.get("STEPWELL_BINARY", os.path.join(TARGET, "debug", "stepwell"))
PROMISES = ["durability", "semantics", "postgresql", "identity", "approvals"]
METHODS = {
    "get": r'"GET"|\bGET /|\.get\(|\.data\(|Method::GET|\bget\(',
    "post": r'"POST"|\bPOST /|\.post\(|\.create\(|\.trigger\(|Method::POST|\bpost\(',
    "put": r'"PUT"|\bPUT /|\.put\(|Method::PUT',
    "patch": r'"PATCH"|\bPATCH /|\.patch\(|Method::PATCH',
    "delete": r'"DELETE"|\bDELETE /|\.delete\(|Method::DELETE',
}
STRING = re.compile(r'r(#*)".*?"\1|"(?:\\.|[^"\\])*"', re.S)
# Before a string is looked for: a quote in a character opens none.
TOKEN = re.compile(r"'(?:\\.|[^'\\])'|" + STRING.pattern, re.S)


def read(pattern):
    paths = glob.glob(os.path.join(ROOT, pattern), recursive=True)
    return {os.path.relpath(path, ROOT): open(path, errors="replace").read() for path in paths if os.path.isfile(path)}


def without_comments(text):
    """Code without its comments. A string with `//` in it keeps it."""
    found = re.compile(TOKEN.pattern + r"|//[^\n]*", re.S)
    return found.sub(lambda match: "" if match.group().startswith("//") else match.group(), text)


def split():
    """The code and the tests, by file. Unit tests are at the end of their file; the test kit counts as a test."""
    code, tests = {}, read("crates/*/tests/**/*")
    for path, text in read("crates/*/src/**/*.rs").items():
        whole = path.endswith("/tests.rs") or "/tests/" in path or path.startswith("crates/testing/") or text.startswith("//! Tests of")
        before, mark, after = ("", "", text) if whole else text.partition("#[cfg(test)]\nmod tests {")
        code[path] = before
        if whole or mark:
            tests[path] = after
    tests.update(read("scripts/mcp/*.mjs") | read("scripts/mcp/*.py"))
    return code, {path: without_comments(text) if path.endswith(".rs") else text for path, text in tests.items()}


def strings(text):
    return (match.group() for match in TOKEN.finditer(text) if not match.group().startswith("'"))


def functions(text):
    return re.split(r"(?m)^\s*(?:pub(?:\([a-z]+\))? )?(?:async )?fn ", text)[1:]


def commands(words=()):
    """The commands of the binary, from its own help."""
    done = subprocess.run([BINARY, *words, "--help"], stdout=subprocess.PIPE, text=True, check=True)
    listed = re.search(r"^Commands:\n(.*?)\n\n", done.stdout, re.S | re.M)
    names = re.findall(r"^  ([a-z][a-z-]*)", listed.group(1), re.M) if listed else []
    below = [name for name in names if name != "help"]
    if not below:
        yield " ".join(words)
    for name in below:
        yield from commands((*words, name))


def items(code):
    """(kind, name) of everything that needs a test."""
    def found(pattern, under):
        text = "\n".join(text for path, text in code.items() if path.startswith(under))
        return set(re.findall(pattern, text, re.M))

    problems = found(r'(?:Problem::new\([^;{]*?|bad_request\(\s*|StatusCode::\w+, )"([a-z-]+)"', "crates/server/src")
    problems |= found(r'=> "([a-z-]+)",', "crates/server/src/error.rs")
    problems |= found(r'=> "([a-z-]+)",', "crates/server/src/guard.rs")
    read_field = r'fields\s*\.(?:get|take|set|list|section|named)\(\s*"(\w+)"'
    routes = found(r'utoipa::path\(\s*(\w+),\s*path = "([^"]+)"', "crates/server/src")
    kinds = {
        "problem": problems,
        "step error": found(r'Failure::(?:new|retryable)\(\s*"([a-z_]+)"', "crates/"),
        "fault": found(r'^    [A-Z_]+ "([a-z-]+)"', "crates/formats/src/code.rs"),
        "route": {f"{method} {path}" for method, path in routes},
        "setting": found(read_field, "crates/server/src/config/"),
        "metric": found(r'"(stepwell_[a-z_]+)"', "crates/"),
        "command": set(commands()),
    }
    for kind, names in kinds.items():
        if not names:
            sys.exit(f"no {kind} was found in the code: the pattern for it is out of date")
        yield from ((kind, name) for name in sorted(names))


class Tests:
    def __init__(self, texts):
        self.texts = texts
        self.strings = {
            path: "\n".join(strings(text)) if path.endswith(".rs") else text for path, text in texts.items()
        }
        self.functions = [(path, body) for path, text in sorted(texts.items()) for body in functions(text)]
        # Their file may have the text in a constant.
        about = [(path, text) for path, text in sorted(texts.items()) if path.startswith("crates/server/src/config/")]
        about += [(path, body) for path, body in self.functions if re.search("config|STEPWELL_", body)]
        self.configuring = about
        self.names = {}
        for path, text in sorted(texts.items()):
            for name in re.findall(r"\bfn (\w+)\(", text):
                self.names.setdefault(name, path)
            # A case of a suite for every store.
            for name in re.findall(r"^\s+([a-z_0-9]+),$", text, re.M):
                self.names.setdefault(name, path)

    def first(self, texts, at):
        return next((path for path in sorted(texts) if at.search(texts[path])), None)

    def user(self, kind, name):
        """The first file with a test that uses this."""
        if kind == "route":
            return self.caller(*name.split(" ", 1))
        if kind == "command":
            # `["secret", "set"`, `"secret set "`, `stepwell secret set`
            words = [re.escape(word) for word in name.split(" ")]
            apart, together = r'"\s*,\s*"'.join(words), " ".join(words)
            return self.first(self.texts, re.compile(rf'"{apart}"|["`(\s]{together}(?![\w-])'))
        if kind == "setting":
            sets = re.compile(rf'(?<![\w-]){name}\\?"?: ?|STEPWELL_(?:[A-Z]+_)*{name.upper()}\b')
            return next((path for path, body in self.configuring if sets.search(body)), None)
        # What Prometheus appends to the name of a histogram.
        suffix = "(?:_(?:sum|count|bucket))?" if kind == "metric" else ""
        return self.first(self.strings, re.compile(r"(?<![\w-])" + re.escape(name) + suffix + r"(?![\w-])"))

    def caller(self, method, path):
        pieces = [re.escape(piece) for piece in re.split(r"\{[^}]*\}", path)]
        # The test kit's and the suites' own helpers begin at the version.
        whole = r'[^\n"/]*'.join(pieces) + r"(?![\w/-])"
        at, by = re.compile(whole), re.compile(METHODS[method])
        return next((file for file, body in self.functions if at.search(body) and by.search(body)), None)


def blocks(text):
    """(line, text) of each paragraph, item of a list and row of a table."""
    fenced, block, begun, table = False, [], 0, 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        row = line.startswith("|") and not fenced
        table = table + 1 if row else 0
        begins = re.match(r"(- |\d+\. )", line)
        if block and (fence or fenced or row or begins or not line.strip() or line.startswith("#")):
            yield begun, "\n".join(block)
            block = []
        if fence:
            fenced = not fenced
        elif fenced or not line.strip() or line.startswith("#"):
            continue
        elif row:
            # The first two lines are the head.
            if table > 2:
                yield number, line
        else:
            begun = begun if block else number
            block.append(line)


def promises(tests):
    rows, faults = [], []
    for path, text in sorted(read("docs/*.md").items()):
        whole = os.path.basename(path).removesuffix(".md") in PROMISES
        # Each row of the tables of threats ends with the tests that prove it.
        threats = [row for row in text.split("\n") if row.startswith("| ")] if path == "docs/security.md" else []
        for row in threats[1:]:
            named = re.findall(r"`(\w+_\w+)`", row.rstrip(" |").rpartition(" | ")[2])
            faults += [f"{path}: there is no test {name}" for name in named if name not in tests.names]
            if not named and not row.startswith(("| ---", "| threat |")):
                faults.append(f"{path}: no test is named for: {row[:80]}")
        for number, block in blocks(text):
            marks = re.findall(r"<!-- tested: ([^>]*?)\s*-->", block)
            if whole and not marks and "<!-- explains -->" not in block:
                faults.append(f"{path}:{number}: no test is named: {block[:60]}")
            for name in [name.strip() for mark in marks for name in mark.split(",")]:
                place = tests.names.get(name)
                first = re.sub(r"\s+", " ", re.sub(r"<!--.*?-->", "", block)).strip(" |")[:60].replace("|", "/")
                rows.append(f"| promise of {path} | {first} | `{name}` in {place or 'none'} |")
                if place is None:
                    faults.append(f"{path}:{number}: there is no test {name}")
    return rows, faults


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
    code, texts = split()
    tests = Tests(texts)
    rows, faults = [], []
    for kind, name in items(code):
        place = tests.user(kind, name)
        rows.append(f"| {kind} | `{name}` | {place or 'none'} |")
        if place is None:
            faults.append(f"{kind} {name}: no test uses it")
    promised, broken = promises(tests)
    rows, faults = rows + promised, faults + broken + list(unproven())
    os.makedirs(TARGET, exist_ok=True)
    with open(os.path.join(TARGET, "coverage.md"), "w") as out:
        out.write("\n".join(["| what | name | first test that uses it |", "| --- | --- | --- |", *rows]) + "\n")
    print("\n".join(faults) or f"{len(rows)} listed, each with a test")
    sys.exit(bool(faults))


main()
