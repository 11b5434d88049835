#!/usr/bin/env python3
"""Writes a CycloneDX list of the crates that are in the binary, from cargo's own metadata. Asks no network.

Only what the program links: dependencies of tests and build scripts are left out. npm packages of the dashboard are added
from its lock file. The same lock files give the same bytes.

Usage: sbom.py FILE
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def metadata():
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    triple = [line.split()[1] for line in subprocess.run(
        ["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines() if line.startswith("host:")]
    command += ["--filter-platform", triple[0]]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)


def linked(found):
    """The ids of packages reached from the program without build and test dependencies, with what each depends on."""
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    root = next(package["id"] for package in found["packages"] if package["name"] == "stepwell")
    reached, todo = {}, [root]
    while todo:
        one = todo.pop()
        if one in reached:
            continue
        normal = [dep["pkg"] for dep in nodes[one]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        reached[one] = normal
        todo += normal
    return root, reached


def component(package):
    name, version = package["name"], package["version"]
    made = {"type": "library", "name": name, "version": version}
    if package["source"]:
        made["purl"] = f"pkg:cargo/{name}@{version}"
    made["bom-ref"] = f"cargo:{name}@{version}"
    if package.get("license"):
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return made


def dashboard():
    with open(os.path.join(ROOT, "ui/package-lock.json")) as file:
        locked = json.load(file)["packages"]
    for path, package in sorted(locked.items()):
        if path and not package.get("dev"):
            name = path.split("node_modules/")[-1]
            made = {"type": "library", "name": name, "version": package["version"], "bom-ref": f"npm:{path}"}
            made["purl"] = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
            if package.get("license"):
                made["licenses"] = [{"expression": package["license"]}]
            yield made


def main():
    found = metadata()
    packages = {package["id"]: package for package in found["packages"]}
    root, reached = linked(found)
    ref = lambda one: component(packages[one])["bom-ref"]
    whole = {**component(packages[root]), "type": "application"}
    components = sorted((component(packages[one]) for one in reached if one != root), key=lambda one: one["bom-ref"])
    bom = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": whole},
        "components": components + list(dashboard()),
        "dependencies": sorted(
            ({"ref": ref(one), "dependsOn": sorted(map(ref, needed))} for one, needed in reached.items()),
            key=lambda one: one["ref"],
        ),
    }
    with open(sys.argv[1], "w") as file:
        json.dump(bom, file, indent=1)
        file.write("\n")
    print(f"{sys.argv[1]}: {len(components)} crates, {len(bom['components']) - len(components)} npm packages")


main()
