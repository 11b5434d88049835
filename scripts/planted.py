#!/usr/bin/env python3
"""Plants the bugs of scripts/planted.toml in a copy of the tree and demands that the named tests notice each one.

All bugs are compiled in at once, each behind a switch that only this build has: the variable PLANTED_BUG names the one
that is on. First every named test must pass with all switches off.

Usage: planted.py [WORD ...]     (only the bugs whose name contains one of the words)
       planted.py --sample       (those of the planner and of one more crate, another one each day; leaves out the
                                  crates that build long)
       planted.py --check        (builds nothing: every bug still applies, and its tests exist)
"""

import datetime
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
# Always the same place, so that a second build compiles only what changed.
COPY = os.path.join(TARGET, "planted")
# A bug that makes a test hang counts as noticed, but must not use up the time of the others.
TIME_LIMIT = 300
# The suite of the planner builds in seconds, and these in a minute or two when the dependencies are there.
PLANNER = "stepwell-formats"
SAMPLED = ["stepwell-store", "stepwell-engine"]
# Property tests notice a bug of the planner within so many cases.
CASES = {"STEPWELL_CASES": os.environ.get("STEPWELL_MUTANT_CASES", "1500")}
# Read once: the planner decides a lot.
SWITCH = """{
    static ON: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| std::env::var("PLANTED_BUG").is_ok_and(|on| on == "%s"));
    *ON
}"""


def planted(bug, text):
    """The file with this bug, behind its switch."""
    for edit in bug.get("edits", [bug]):
        count = text.count(edit["old"])
        if count != 1:
            sys.exit(f"no longer applies: {bug['name']}: {bug['file']} has the text {count} times: {edit['old']}")
        text = text.replace(edit["old"], edit["new"].replace("PLANTED", SWITCH % bug["name"]))
    return text


def plant(bugs, place):
    files = {}
    for bug in bugs:
        path = os.path.join(place, "crates", bug["file"])
        if path not in files:
            with open(path) as source:
                files[path] = source.read()
        files[path] = planted(bug, files[path])
    return files


def copy():
    shutil.rmtree(COPY, ignore_errors=True)
    os.makedirs(COPY)
    for name in ["Cargo.toml", "Cargo.lock", "clippy.toml", "rust-toolchain.toml"]:
        shutil.copy2(os.path.join(ROOT, name), COPY)
    # A version of its own: else cargo takes what it has built of the real crates for these.
    with open(os.path.join(COPY, "Cargo.toml")) as source:
        manifest = source.read()
    with open(os.path.join(COPY, "Cargo.toml"), "w") as source:
        source.write(re.sub(r'(?m)^version = "([^"]*)"', r'version = "\1-planted"', manifest, count=1))
    # With the times of the files, by which cargo tells what changed.
    for name in ["crates", "docs", "examples", "scripts", "deploy"]:
        shutil.copytree(os.path.join(ROOT, name), os.path.join(COPY, name), symlinks=True)


def write(files):
    for path, text in files.items():
        with open(path, "w") as source:
            source.write(text)


def build(bugs):
    """(package, suite) → (executable, package directory). Features are those of the workspace, so that the dependencies
    that CI has built are used again."""
    suites = {bug["suite"] for bug in bugs}
    targets = [word for suite in sorted(suites - {"lib"}) for word in ("--test", suite)]
    if "lib" in suites:
        targets.append("--lib")
    if any(bug["package"] == "stepwell" for bug in bugs):
        targets += ["--bin", "stepwell"]
    command = ["cargo", "test", "--workspace", "--no-run", "--quiet", "--message-format=json", *targets]
    env = {**os.environ, "CARGO_TARGET_DIR": TARGET}
    done = subprocess.run(command, cwd=COPY, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        for line in done.stdout.splitlines():
            message = json.loads(line)
            if message.get("reason") == "compiler-message" and message["message"]["level"] == "error":
                print(message["message"]["rendered"])
        sys.exit("the bugs do not compile")
    found = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message.get("executable"):
            directory, target = os.path.dirname(message["manifest_path"]), message["target"]
            package = os.path.basename(directory)
            package = "stepwell" if package == "cli" else f"stepwell-{package}"
            suite = target["name"] if target["kind"][0] == "test" else target["kind"][0]
            found[package, suite] = (message["executable"], directory)
    return found


def run(executables, bug, name=""):
    """Whether the tests passed, and their output."""
    executable, directory = executables[bug["package"], bug["suite"]]
    env = {**os.environ, **CASES, "PLANTED_BUG": name, "RUST_BACKTRACE": "0", "CARGO_MANIFEST_DIR": directory}
    tests = subprocess.Popen([executable, bug["tests"]], cwd=directory, env=env, text=True, errors="replace",
                             start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    end = lambda: os.killpg(tests.pid, signal.SIGKILL)
    limit = threading.Timer(TIME_LIMIT, end)
    limit.start()
    said = []
    for line in tests.stdout:
        said.append(line)
        # One test is enough; the others need not come to their end.
        if name and re.match(r"test .* FAILED$", line):
            end()
            break
    passed = tests.wait() == 0
    limit.cancel()
    if "running 0 tests\n" in said:
        sys.exit(f"{bug['name']}: no test of {bug['suite']} has a name with {bug['tests']}")
    return passed, "".join(said)


def chosen(words):
    with open(os.path.join(ROOT, "scripts", "planted.toml"), "rb") as file:
        bugs = tomllib.load(file)["bug"]
    names = [bug["name"] for bug in bugs]
    if len(set(names)) != len(names):
        sys.exit("two bugs of planted.toml have the same name")
    if words == ["--sample"]:
        package = SAMPLED[datetime.date.today().toordinal() % len(SAMPLED)]
        print(f"today's crate: {package}")
        return [bug for bug in bugs if bug["package"] in (PLANNER, package) and bug["suite"] != "lib"]
    return [bug for bug in bugs if not words or any(word in bug["name"] for word in words)]


def check(bugs):
    """Checks in the text alone that every bug applies and its tests exist."""
    plant(bugs, ROOT)
    for bug in bugs:
        crate = "cli" if bug["package"] == "stepwell" else bug["package"].removeprefix("stepwell-")
        folder = "src" if bug["suite"] == "lib" else os.path.join("tests", bug["suite"])
        place = os.path.join(ROOT, "crates", crate, folder)
        texts = [place + ".rs"] if os.path.isfile(place + ".rs") else [
            os.path.join(parent, name) for parent, _, names in os.walk(place) for name in names if name.endswith(".rs")
        ]
        name = bug["tests"].split("::")[-1]
        if not any(re.search(rf"fn {name}", open(path).read()) for path in texts):
            sys.exit(f"{bug['name']}: no test of {bug['suite']} is called {name}")
    print(f"{len(bugs)} bugs apply")


def main():
    words = sys.argv[1:]
    if words == ["--check"]:
        return check(chosen([]))
    bugs = chosen(words)
    if not bugs:
        sys.exit(f"no bug has a name with {' or '.join(words)}")
    begun = time.monotonic()
    copy()
    write(plant(bugs, COPY))
    executables = build(bugs)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = usage.ru_utime + usage.ru_stime
    print(f"built in {time.monotonic() - begun:.0f} s, {processor:.0f} s of processor time", flush=True)
    for place in {(bug["package"], bug["suite"], bug["tests"]): bug for bug in bugs}.values():
        passed, said = run(executables, place)
        if not passed:
            sys.exit(f"{said[-3000:]}\nthe tests of {place['name']} fail without any planted bug")
    missed = []
    for bug in bugs:
        begun = time.monotonic()
        passed, _ = run(executables, bug, bug["name"])
        took = time.monotonic() - begun
        missed += [bug["name"]] * passed
        verdict = "NOT CAUGHT" if passed else "caught"
        print(f"{verdict}: {bug['name']} ({bug['package']}, {bug['suite']}: {bug['tests']}, {took:.0f} s)", flush=True)
    print(f"{len(bugs) - len(missed)} of {len(bugs)} planted bugs caught")
    sys.exit(bool(missed))


main()
