#!/usr/bin/env python3
"""Plants the bugs of scripts/planted.toml in a copy of the tree and demands that the named tests notice each one.

All bugs are compiled in at once, each behind a switch that only this build has: the variable PLANTED_BUG names the one
that is on. First every named test must pass with all switches off. A bug marked `awaiting` may go unnoticed; once it is
noticed, the mark must be removed. Bugs of the planner are in mutants.txt.

Usage: planted.py [WORD ...]     (only the bugs whose name contains one of the words)
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
# A bug that makes a test hang counts as noticed, but must not use up the time of the others.
TIME_LIMIT = 300


def plant(copy, bugs):
    for bug in bugs:
        path = os.path.join(copy, "crates", bug["file"])
        with open(path) as source:
            text = source.read()
        if text.count(bug["old"]) != 1:
            sys.exit(f"no longer applies: {bug['name']}: {bug['file']} has the text {text.count(bug['old'])} times")
        switch = f'std::env::var("PLANTED_BUG").is_ok_and(|on| on == "{bug["name"]}")'
        with open(path, "w") as source:
            source.write(text.replace(bug["old"], bug["new"].replace("PLANTED", switch)))


def run(copy, bug, name=""):
    """Whether the tests passed, and what they said."""
    command = ["cargo", "test", "--quiet", "-p", bug["package"], "--test", bug["suite"], "--", bug["tests"]]
    env = {**os.environ, "CARGO_TARGET_DIR": TARGET, "PLANTED_BUG": name, "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(command, cwd=copy, env=env, text=True, timeout=TIME_LIMIT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return False, "not finished in time"
    if done.returncode == 0 and " 0 failed" in done.stdout and "\ntest result: ok. 0 passed" in done.stdout:
        sys.exit(f"{bug['name']}: no test of {bug['suite']} has a name with {bug['tests']}")
    return done.returncode == 0, done.stdout


def main():
    with open(os.path.join(ROOT, "scripts", "planted.toml"), "rb") as file:
        bugs = tomllib.load(file)["bug"]
    words = sys.argv[1:]
    bugs = [bug for bug in bugs if not words or any(word in bug["name"] for word in words)]
    missed = 0
    # Always the same place, so that a second build compiles only what changed.
    copy = os.path.join(TARGET, "planted")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    for name in ["Cargo.toml", "Cargo.lock", "clippy.toml"]:
        shutil.copy(os.path.join(ROOT, name), copy)
    for name in ["crates", "docs", "examples", "scripts"]:
        shutil.copytree(os.path.join(ROOT, name), os.path.join(copy, name), symlinks=True)
    plant(copy, bugs)
    for place in {(bug["package"], bug["suite"], bug["tests"]): bug for bug in bugs}.values():
        passed, said = run(copy, place)
        if not passed:
            sys.exit(f"{said[-3000:]}\nthe tests of {place['name']} fail without any planted bug")
    for bug in bugs:
        begun = time.monotonic()
        passed, _ = run(copy, bug, bug["name"])
        took = f"{bug['suite']}, {time.monotonic() - begun:.0f} s"
        if passed and "awaiting" in bug:
            print(f"awaiting: {bug['name']} ({bug['awaiting']})", flush=True)
        elif passed or "awaiting" in bug:
            missed += 1
            print(f"{'NOT CAUGHT' if passed else 'caught now, remove `awaiting`'}: {bug['name']} ({took})", flush=True)
        else:
            print(f"caught: {bug['name']} ({took})", flush=True)
    waiting = sum("awaiting" in bug for bug in bugs)
    print(f"{len(bugs)} planted, {waiting} awaiting a test, {missed} wrong")
    sys.exit(bool(missed))


main()
