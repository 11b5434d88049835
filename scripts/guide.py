#!/usr/bin/env python3
"""Does what the guide says: runs every command of its pages against a real binary and compares what it prints.

Each page runs in an empty folder with an empty home, as a reader would: commands in one shell, from top to bottom. A block
is one of these:

- a definition or file, after a line that ends in "as `NAME`:". It is written to that file.
- `sh`: runs and must succeed.
- `text`: what the `sh` block before it prints. `…` stands for anything; times, durations and ids are compared as such.

A comment on the line before a block says what else it is:

- `<!-- run: background -->`: a server. The page goes on once it is ready, and it ends with the page.
- `<!-- run: exit 1 -->`: the block ends with this exit code.
- `<!-- run: no, REASON -->`: the block is not run.
- `<!-- run: needs postgresql -->`, at the top: a database at 127.0.0.1:5432, with a user and a database `stepwell`.
- `<!-- run: needs python -->`, `<!-- run: needs npm -->`, at the top: the packages of the SDKs can be installed.

Ports of the pages are exchanged for free ones, so pages run side by side.

Usage: guide.py [--update] [PAGE ...]     (--update writes what the commands print into the pages: read the difference)
"""

import concurrent.futures
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import guide_needs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BINARY = os.path.abspath(os.environ.get("STEPWELL_BINARY", os.path.join(ROOT, "target/debug/stepwell")))
# README.md, every page below these folders of docs/, and these pages there.
FOLDERS = ["tutorials", "how-to", "coming-from"]
PAGES = ["README.md", "install.md", "faq.md", "concepts.md", "comparison.md"]
# A block that takes longer is stuck.
LIMIT = 60
SIDE_BY_SIDE = 4

PORTS = ["7070", "7071", "5432"]
ID = r"\b(run|wf|rev|node|user|key|chn|req|usr|stp|wh)_[0-9a-f]{6,}[0-9a-f-]*(\.\w+)*"
# What differs from run to run, and what it is compared as.
CHANGING = [
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", "TIME"),
    (ID, r"\1_ID"),
    (r"\b[0-9a-f]{12,64}\b", "HEX"),
    (r"\bsw_\w+", "KEY"),
    (r"\b\d+(\.\d+)? ?(ms|s|min|h)\b", "DURATION"),
]


class Fault(Exception):
    pass


class Block:
    def __init__(self, place, language, lines, start, end, note, file):
        self.place, self.language, self.text = place, language, "\n".join(lines) + "\n"
        self.start, self.end, self.note, self.file = start, end, note, file


def blocks(page, lines):
    at = 0
    while at < len(lines):
        opened = re.match(r"```(\w*)$", lines[at])
        if not opened:
            if lines[at].startswith("```"):
                raise Fault(f"{page}:{at + 1}: a block begins with ``` and one word")
            at += 1
            continue
        end = at + 1
        while end < len(lines) and lines[end] != "```":
            end += 1
        before = [line for line in lines[max(0, at - 3):at] if line.strip()][-2:]
        note = next((found[1] for line in before if (found := re.match(r"<!-- run: (.*) -->$", line))), None)
        file = next((found[1] for line in before if (found := re.search(r"\bas `([\w./-]+)`:$", line))), None)
        yield Block(f"{page}:{at + 1}", opened[1], lines[at + 1:end], at, end, note, file)
        at = end + 1


def same(text):
    for pattern, name in CHANGING:
        text = re.sub(pattern, name, text)
    # Columns move with the width of what changes.
    return re.sub(r"(?m)^ +| +$", "", re.sub(r" {2,}", " ", text))


def matches(expected, printed):
    """Line by line. A line `…` stands for any number of lines, and `…` in a line for anything."""
    pattern = ""
    for line in same(expected).splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part.rstrip()) for part in line.split("…")) + r"\s*\n"
    printed = "\n".join(line.rstrip() for line in same(printed).splitlines()) + "\n"
    return re.fullmatch(pattern, printed) is not None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


class Shell:
    """A reader's terminals: one shell for commands, and one process for each server."""

    def __init__(self, home, env):
        self.home, self.env, self.servers = home, env, []
        self.process = subprocess.Popen(
            ["bash", "--norc"], cwd=os.path.join(home, "work"), env=env, start_new_session=True, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def run(self, text):
        """(exit code, what it printed)"""
        mark = "-- end of block"
        script = f"{{\n{text}\n}} </dev/null\nprintf '%s %s\\n' '{mark}' $?\n"
        self.process.stdin.write(script.encode())
        late = threading.Timer(LIMIT, lambda: os.killpg(self.process.pid, signal.SIGKILL))
        late.start()
        printed = []
        try:
            for line in iter(self.process.stdout.readline, b""):
                line = line.decode(errors="replace")
                if mark in line:
                    before, code = line.rsplit(mark, 1)
                    return int(code), "".join([*printed, before])
                printed.append(line)
        finally:
            late.cancel()
        raise Fault(f"did not end within {LIMIT} s, or ended the shell:\n{''.join(printed)}")

    def serve(self, text):
        log = os.path.join(self.home, f"server-{len(self.servers)}.log")
        # What the shell has exported, and where it is.
        code, told = self.run("pwd; export -p")
        folder, exported = told.split("\n", 1)
        with open(log, "w") as said:
            server = subprocess.Popen(
                ["bash", "-c", f"{exported}\nexec {text.strip()}"], cwd=folder, env=self.env, stdin=subprocess.DEVNULL,
                stdout=said, stderr=said, start_new_session=True,
            )
        self.servers.append(server)
        # A port is the only number of five digits in such a command.
        listen = re.search(r"\b(\d{5})\b", text)
        port = int(listen[1] if listen else self.env["STEPWELL_LISTEN"].rsplit(":", 1)[1])
        until = time.monotonic() + LIMIT
        while time.monotonic() < until and server.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", port), 1) as one:
                    one.sendall(b"GET /readyz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
                    if b" 200 " in one.recv(64):
                        return
            except OSError:
                pass
            time.sleep(0.02)
        with open(log) as said:
            raise Fault(f"the server is not ready:\n{said.read()}")

    def close(self):
        for process in [self.process, *self.servers]:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Page:
    def __init__(self, path, update):
        self.path, self.update = path, update
        self.name = os.path.relpath(path, ROOT)
        with open(path) as file:
            self.lines = file.read().split("\n")
        self.commands = self.compared = self.files = self.left_out = 0

    def run(self):
        self.blocks = list(blocks(self.name, self.lines))
        if not self.blocks:
            return
        home = tempfile.mkdtemp(prefix="stepwell-guide-")
        os.mkdir(os.path.join(home, "work"))
        os.mkdir(os.path.join(home, "bin"))
        # The README speaks from the root of the repository.
        if self.name == "README.md":
            os.symlink(os.path.join(ROOT, "examples"), os.path.join(home, "work/examples"))
        os.symlink(BINARY, os.path.join(home, "bin", "stepwell"))
        self.ports = {port: free_port() for port in PORTS}
        env = {
            "HOME": home, "PATH": f"{home}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb", "TZ": "UTC",
            "STEPWELL_LISTEN": f"127.0.0.1:{self.ports['7070']}",
        }
        needed = []
        shell = None
        try:
            for need in re.findall(r"^<!-- run: needs (\w+) -->$", "\n".join(self.lines), re.M):
                needed.append(guide_needs.provide(need, home, env, self.ports))
            shell = Shell(home, env)
            self.walk(shell)
        finally:
            if shell:
                shell.close()
            for end in needed:
                end()
            shutil.rmtree(home, ignore_errors=True)
        if self.update:
            with open(self.path, "w") as file:
                file.write("\n".join(self.lines))

    def exchanged(self, text):
        for written, real in self.ports.items():
            text = re.sub(rf"\b{written}\b", real, text)
        return text

    def as_written(self, text, home):
        for written, real in self.ports.items():
            text = re.sub(rf"\b{real}\b", written, text)
        return text.replace(home, "/home/ann")

    def walk(self, shell):
        printed, before, updates = None, None, []
        for block in self.blocks:
            if block.note and block.note.startswith("no, "):
                self.left_out += 1
            elif block.file:
                path = os.path.join(shell.home, "work", block.file)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as file:
                    file.write(self.exchanged(block.text))
                self.files += 1
            elif block.language == "sh":
                self.commands += sum(1 for line in block.text.splitlines() if line and line[0] not in " #")
                if block.note == "background":
                    shell.serve(self.exchanged(block.text))
                    continue
                expected = int(block.note.removeprefix("exit ")) if block.note else 0
                try:
                    code, printed = shell.run(self.exchanged(block.text))
                except Fault as fault:
                    raise Fault(f"{block.place}: {fault}") from None
                # What a shell says about a process that ended differs from shell to shell.
                printed = re.sub(r"bash: line \d+: +\d+ Killed.*\n", "", printed)
                printed, before = self.as_written(printed, shell.home), block
                if code != expected:
                    raise Fault(f"{block.place}: exit code {code}, not {expected}\n{printed}")
            elif block.language == "text":
                if printed is None:
                    raise Fault(f"{block.place}: no commands before this have an output that was not compared")
                if self.update and not matches(block.text, printed):
                    updates.append((block, re.sub(ID, r"\1_…", re.sub(r" +$", "", printed.rstrip("\n"), flags=re.M))))
                elif not matches(block.text, printed):
                    raise Fault(f"{block.place}: {before.place} printed\n{printed}")
                printed = None
                self.compared += 1
            else:
                raise Fault(f"{block.place}: neither saved as a file nor run; say so, or say why not")
        for block, text in reversed(updates):
            self.lines[block.start + 1:block.end] = text.split("\n")


def run(page):
    begun = time.monotonic()
    try:
        page.run()
        fault = None
    except (Fault, guide_needs.Missing) as found:
        fault = str(found)
    return page, fault, time.monotonic() - begun


def main():
    words = sys.argv[1:]
    update = "--update" in words
    words = [word for word in words if word != "--update"]
    paths = [path for folder in FOLDERS for path in sorted(glob.glob(f"{ROOT}/docs/{folder}/*.md"))]
    paths.append(f"{ROOT}/README.md")
    paths += [path for name in PAGES if os.path.exists(path := f"{ROOT}/docs/{name}")]
    chosen = [Page(path, update) for path in paths if not words or any(word in path for word in words)]
    if not chosen:
        sys.exit("no such page")
    faults = 0
    # Those that wait for installations first.
    chosen.sort(key=lambda page: "<!-- run: needs" not in "\n".join(page.lines))
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for page, fault, seconds in pool.map(run, chosen):
            what = f"{page.commands} commands, {page.compared} outputs compared, {page.files} files"
            left_out = f", {page.left_out} blocks not run" if page.left_out else ""
            print(f"{page.name}: {what}{left_out}, {seconds:.1f} s{' FAILED' if fault else ''}", flush=True)
            if fault:
                print(fault)
                faults += 1
    total = [sum(getattr(page, what) for page in chosen) for what in ("commands", "compared", "files", "left_out")]
    print("in all: {} commands run, {} outputs compared, {} files written, {} blocks not run".format(*total))
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
