#!/usr/bin/env python3
"""Builds the npm packages of the program: `stepwell`, and `@stepwell/PLATFORM` with the binary of this platform.

`stepwell` depends on the platforms' packages optionally, so npm installs the one that fits. No package has scripts.

Usage: npm.py DIRECTORY BINARY     (prints the packages it wrote)
"""

import gzip
import json
import os
import platform
import shutil
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = os.path.join(ROOT, "packages/npm")
# Node's names of the platforms that releases are built for.
PLATFORMS = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"]


def this_platform():
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine().lower()]
    return f"{sys.platform}-{machine}"


def pack(folder, package, to):
    """What `npm pack` makes, with a compression that can be chosen and without running anything."""
    with open(os.path.join(folder, "package.json"), "w") as file:
        json.dump(package, file, indent=2)
        file.write("\n")
    for license in ("LICENSE-APACHE", "LICENSE-MIT"):
        shutil.copy(os.path.join(ROOT, license), folder)
    name = package["name"].replace("@", "").replace("/", "-")
    path = os.path.join(to, f"{name}-{package['version']}.tgz")
    level = int(os.environ.get("PACKAGE_COMPRESSION", "9"))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", level, file, mtime=0) as stream:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for inside in sorted(files(folder)):
                entry = archive.gettarinfo(os.path.join(folder, inside), f"package/{inside}")
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                # The time that npm writes.
                entry.mtime = 499162500
                entry.mode = 0o755 if inside.startswith("bin/") else 0o644
                with open(os.path.join(folder, inside), "rb") as content:
                    archive.addfile(entry, content)
    print(path)


def files(folder):
    for place, _, names in os.walk(folder):
        yield from (os.path.relpath(os.path.join(place, name), folder) for name in names)


def main():
    to, binary = os.path.abspath(sys.argv[1]), sys.argv[2]
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(SOURCE, "package.json")) as file:
        main_package = json.load(file)
    version = main_package["version"]
    main_package["optionalDependencies"] = {f"@stepwell/{name}": version for name in PLATFORMS}
    with tempfile.TemporaryDirectory() as place:
        whole = os.path.join(place, "stepwell")
        shutil.copytree(SOURCE, whole)
        pack(whole, main_package, to)
        name = this_platform()
        part = os.path.join(place, name)
        os.makedirs(os.path.join(part, "bin"))
        shutil.copy(binary, os.path.join(part, "bin/stepwell"))
        os.chmod(os.path.join(part, "bin/stepwell"), 0o755)
        with open(os.path.join(part, "README.md"), "w") as file:
            file.write(f"# @stepwell/{name}\n\nThe binary of `stepwell` for {name}. Install `stepwell` instead.\n")
        system, machine = name.split("-")
        pack(part, {
            "name": f"@stepwell/{name}", "version": version, "description": f"The binary of stepwell for {name}",
            "license": main_package["license"], "os": [system], "cpu": [machine], "files": ["bin", "README.md"],
        }, to)


main()
