#!/usr/bin/env python3
"""Builds the wheel of `stepwell`: the Python client, and with --binary the program itself, for one platform.

With the binary, `pipx install stepwell` and `uvx stepwell serve` run it, and tests that start a throw-away server find it.
Without it, the wheel is for every platform. The same input gives the same bytes. No build tool is needed.

Usage: wheel.py DIRECTORY [--binary FILE]     (prints the wheel it wrote)
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SDK = os.path.join(ROOT, "sdk/python")


def commit_time():
    """SOURCE_DATE_EPOCH, or when the commit was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    # The first moment that a ZIP file can hold, where there is no commit.
    return int(asked.stdout) if asked.returncode == 0 else 315532800


def platform_tag(binary):
    """The oldest glibc that has every symbol the program needs; musl where it needs none."""
    with open(binary, "rb") as file:
        content = file.read()
    machine = platform.machine()
    if sys.platform == "darwin":
        return f"macosx_11_0_{machine}"
    versions = [(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", content)]
    if not versions:
        return f"musllinux_1_2_{machine}.manylinux_2_17_{machine}"
    newest = max(versions)
    return f"manylinux_{newest[0]}_{newest[1]}_{machine}"


def metadata(project):
    with open(os.path.join(SDK, project["readme"])) as file:
        readme = file.read()
    lines = [
        "Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}",
        f"Summary: {project['description']}", f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}", "Description-Content-Type: text/markdown",
    ]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    return "\n".join(lines) + "\n\n" + readme


def sources():
    top = os.path.join(SDK, "src")
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                yield os.path.relpath(path, top), file.read()


def main():
    words = sys.argv[1:]
    binary = words[words.index("--binary") + 1] if "--binary" in words else None
    with open(os.path.join(SDK, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    name = f"{project['name']}-{project['version']}"
    tag = f"py3-none-{platform_tag(binary) if binary else 'any'}"
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tag.removeprefix("py3-none-").split("."))
    about = f"Wheel-Version: 1.0\nGenerator: stepwell\nRoot-Is-Purelib: {str(not binary).lower()}\n{tags}"
    content = list(sources())
    if binary:
        with open(binary, "rb") as file:
            content.append((f"{name}.data/scripts/stepwell", file.read()))
    content += [(f"{name}.dist-info/METADATA", metadata(project).encode()), (f"{name}.dist-info/WHEEL", about.encode())]
    for license in ("LICENSE-APACHE", "LICENSE-MIT"):
        with open(os.path.join(ROOT, license), "rb") as file:
            content.append((f"{name}.dist-info/licenses/{license}", file.read()))
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={digest(data)},{len(data)}\n" for path, data in content)
    content.append((f"{name}.dist-info/RECORD", f"{record}{name}.dist-info/RECORD,,\n".encode()))
    made = time.gmtime(commit_time())[:6]
    os.makedirs(words[0], exist_ok=True)
    wheel = os.path.join(words[0], f"{name}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as file:
        for path, data in content:
            entry = zipfile.ZipInfo(path, made)
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, data, compresslevel=int(os.environ.get("PACKAGE_COMPRESSION", "9")))
    print(wheel)


main()
