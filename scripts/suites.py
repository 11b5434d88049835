#!/usr/bin/env python3
"""Runs every test executable of the workspace, and the suites that are scripts, in two lanes.

Parts that keep a processor busy run one after the other in the first lane, beside parts that mostly wait in the second.
Each part has a time limit and a log. A part that fails does not stop the others. No test is filtered out: what cargo
builds is what runs, and the number of tests that an executable lists must be the number that it reports.

Data of tests is in memory if the machine has a file system there with enough room, so that no part waits for the disk.

Usage: suites.py [NAME ...]     (only the parts whose name contains one of the words)
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
LOGS = os.path.join(TARGET, "suites")
# Most parts take seconds to minutes; a hang must not use up the time of the whole run.
TIME_LIMIT = 900

# A file system in memory, and the room that two parts and their databases take.
MEMORY, ROOM = "/dev/shm", 4 << 30
# Suites about what survives a crash use the disk.
ON_DISK = ["chaos", "kill", "power_cut"]

# Executables that keep the processors busy, longest first. All others mostly wait for servers, clocks and processes.
BUSY = ["server", "properties", "simulation", "conformance", "gates", "identity", "running", "hostile", "rules"]
# Suites whose output says what they covered.
VERBOSE = ["abuse", "cases (formats)", "chaos", "kill", "power_cut", "properties", "simulation"]
# Suites that run on either store, and so on PostgreSQL too.
EITHER_STORE = [
    "running", "durable", "client", "server", "graph", "live", "otlp", "kill", "javascript", "mcp (cli)", "gates",
    "identity", "nodes", "notify", "embedded",
]


class Part:
    def __init__(self, name, command, cwd=ROOT, env=None, busy=False, tests=None, limit=TIME_LIMIT):
        self.name, self.command, self.cwd, self.busy = name, command, cwd, busy
        self.env = env or {}
        self.tests, self.limit = tests, limit
        self.log = os.path.join(LOGS, re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".log")
        # A part counts as failed until it has run, so that none can be missed.
        self.seconds, self.passed, self.failed, self.fault = 0, 0, 1, "did not run"

    def run(self, temporary):
        begun = time.monotonic()
        on_disk = temporary is None or any(name in self.name for name in ON_DISK)
        env = {**os.environ, **({} if on_disk else {"TMPDIR": temporary}), **self.env}
        try:
            self.fault = self.execute(env)
        except OSError as error:
            self.fault = f"cannot be started: {error}"
        self.seconds = round(time.monotonic() - begun)
        self.count()

    def execute(self, env):
        """What went wrong, or None."""
        with open(self.log, "w") as log:
            # A group of its own, so that a part which hangs is ended with all that it started.
            process = subprocess.Popen(
                self.command, cwd=self.cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )
            try:
                code = process.wait(self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return f"not finished after {self.limit} s"
        return None if code == 0 else f"exit code {code}"

    def count(self):
        if self.tests is None:
            self.passed, self.failed = (0, 1) if self.fault else (1, 0)
            return
        with open(self.log, errors="replace") as log:
            found = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", log.read())
        self.passed, self.failed, ignored = (sum(int(row[n]) for row in found) for n in range(3))
        if self.fault is None and self.passed + ignored != self.tests:
            self.fault = f"{self.tests} tests are listed, {self.passed} passed and {ignored} were ignored"
        if self.fault and not self.failed:
            self.failed = 1


def executables():
    """(target name, executable, package directory) of every test executable, from cargo itself."""
    command = ["cargo", "test", "--workspace", "--no-run", "--quiet", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message.get("executable"):
            target = message["target"]
            directory = os.path.dirname(message["manifest_path"])
            kind = target["kind"][0]
            found.append((target["name"] if kind == "test" else kind, message["executable"], directory))
    names = [name for name, _, _ in found]
    for name, executable, directory in found:
        # Suites of two crates have one name, and all tests inside of crates do.
        several = names.count(name) > 1 or name in ("lib", "bin")
        yield f"{name} ({os.path.basename(directory)})" if several else name, executable, directory


def listed(executable, directory):
    listing = subprocess.run([executable, "--list"], cwd=directory, stdout=subprocess.PIPE, text=True, check=True)
    return sum(1 for line in listing.stdout.splitlines() if line.endswith(": test"))


def parts():
    found = list(executables())
    known = {name for name, _, _ in found}
    for name in [*BUSY, *VERBOSE, *EITHER_STORE]:
        if name not in known:
            sys.exit(f"suites.py names the test {name}, which does not exist")
    for name, executable, directory in found:
        tests = listed(executable, directory)
        if tests == 0:
            continue
        command = [executable, *(["--nocapture"] if name in VERBOSE else [])]
        part = {"command": command, "cwd": directory, "busy": name in BUSY, "tests": tests}
        # As cargo sets it.
        env = {"CARGO_MANIFEST_DIR": directory}
        yield Part(name, env=env, **part)
        if name in EITHER_STORE:
            yield Part(f"{name} on PostgreSQL", env={"STEPWELL_TEST_STORE": "postgres", **env}, **part)
    binary = {"STEPWELL_BINARY": os.path.join(TARGET, "debug", "stepwell")}
    yield Part("documentation tests", ["cargo", "test", "--workspace", "--doc", "--quiet"], busy=True)
    libraries = ["-p", "stepwell-client", "-p", "stepwell-embedded", "--all-features"]
    yield Part(
        "documentation of the libraries", ["cargo", "doc", "--quiet", "--no-deps", *libraries],
        env={"RUSTDOCFLAGS": "-D warnings"}, busy=True,
    )
    yield Part("browser tests", ["npm", "--prefix", "ui", "run", "--silent", "e2e"], busy=True)
    yield Part("API against its description", ["bash", "scripts/schemathesis.sh", "short"], env=binary)
    yield Part("MCP interoperability", ["bash", "scripts/mcp.sh"], env=binary)
    yield Part("list of what tests use", ["python3", "scripts/coverage.py"], env=binary)
    yield Part("planted bugs: sample", ["python3", "scripts/planted.py", "--sample"], busy=True, limit=2 * TIME_LIMIT)
    yield Part("planted bugs: all apply", ["python3", "scripts/planted.py", "--check"])
    clients = [
        ("SDK for Python", "python"), ("SDK for TypeScript", "typescript"), ("editor", "editor"),
        ("generated clients", "generated"),
    ]
    for name, what in clients:
        yield Part(name, ["bash", "scripts/clients.sh", what], env=binary)
    yield Part("guide: what it says is done", ["python3", "scripts/guide.py"], env=binary)
    yield Part("packages: a first run from each", ["bash", "scripts/package/try.sh"], env=binary)
    yield Part("guide: its tests notice", ["python3", "scripts/guide_test.py"])
    yield Part("guide: links", ["python3", "scripts/links.py"])
    yield Part("guide: prose", ["python3", "scripts/prose.py"])
    yield Part("quickstarts of the SDKs", ["bash", "scripts/quickstarts.sh"], env=binary)


class Lanes:
    """Two lanes over two queues. A lane whose own queue is empty helps with the other."""

    def __init__(self, all_parts, temporary):
        self.temporary = temporary
        order = lambda part: BUSY.index(part.name) if part.name in BUSY else len(BUSY)
        busy = sorted((part for part in all_parts if part.busy), key=order)
        self.queues = [busy, [part for part in all_parts if not part.busy]]
        self.lock = threading.Lock()

    def next(self, lane):
        with self.lock:
            for queue in (self.queues[lane], self.queues[1 - lane]):
                if queue:
                    return queue.pop(0)

    def work(self, lane):
        while part := self.next(lane):
            part.run(self.temporary)
            with self.lock:
                verdict = f"FAILED: {part.fault}" if part.fault else "ok"
                print(f"── {part.name}: {part.seconds} s, {part.passed} passed, {verdict}", flush=True)

    def run(self):
        threads = [threading.Thread(target=self.work, args=(lane,)) for lane in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def in_memory():
    """A directory for the data of tests, or None if there is no room in memory or programs there cannot be run."""
    if not os.path.isdir(MEMORY):
        return None
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize < ROOM or there.f_flag & os.ST_NOEXEC:
        return None
    directory = tempfile.mkdtemp(prefix="stepwell-tests-", dir=MEMORY)
    # PostgreSQL runs as another user than root.
    os.chmod(directory, 0o755)
    return directory


def main():
    os.makedirs(LOGS, exist_ok=True)
    words = sys.argv[1:]
    chosen = [part for part in parts() if not words or any(word in part.name for word in words)]
    if not chosen:
        sys.exit(f"no part has a name with {' or '.join(words)}")
    temporary = in_memory()
    Lanes(chosen, temporary).run()
    if temporary:
        shutil.rmtree(temporary, ignore_errors=True)
    for part in chosen:
        if part.fault:
            print(f"\n── {part.name} failed: {part.fault}")
            with open(part.log, errors="replace") as log:
                print("".join(log.readlines()[-120:]))
    for part in (part for part in chosen if part.name in VERBOSE and not part.fault):
        with open(part.log, errors="replace") as log:
            shown = [line for line in log if line.strip() and not re.match(r"(test |running \d|failures:)", line)]
        print(f"── {part.name}\n{''.join(shown[-40:])}")
    print(f"{sum(part.passed for part in chosen)} passed, {sum(part.failed for part in chosen)} failed")
    sys.exit(any(part.fault for part in chosen))


main()
