#!/usr/bin/env python3
"""Checks the Helm chart without Helm: with its default values, it is deploy/kubernetes/stepwell.yaml.

The chart uses few features of templates on purpose, so that this can fill them in. Anything else is a fault here.
"""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "deploy/helm/stepwell")


def values():
    """`image.tag: 0.1.0` and so on, from the few lines of values.yaml."""
    found, folder = {}, ""
    with open(os.path.join(CHART, "values.yaml")) as file:
        for line in file.read().split("\n"):
            if line.strip() and not line.lstrip().startswith("#"):
                name, _, value = line.strip().partition(":")
                folder = folder if line.startswith(" ") else ""
                if value.strip():
                    found[folder + name] = value.strip()
                else:
                    folder, found[name] = f"{name}.", None
    return found


def rendered():
    known = {f".Values.{name}": value for name, value in values().items()} | {".Release.Name": "stepwell"}
    with open(os.path.join(CHART, "templates/stepwell.yaml")) as file:
        text = file.read()
    text = re.sub(r" *\{\{- with \.Values\.config \}\}\n.*\n *\{\{- end \}\}\n", "", text)
    block = lambda found: "\n".join(
        f"{' ' * int(found[2])}{name.rsplit('.', 1)[1]}: {value}"
        for name, value in known.items() if name.startswith(f"{found[1]}.")) + "\n"
    text = re.sub(r" *\{\{- toYaml (\.\S+) \| nindent (\d+) \}\}\n", block, text)
    for name in re.findall(r"\{\{ (\S+) \}\}", text):
        if known.get(name) is None:
            sys.exit(f"values.yaml has no {name}")
        text = text.replace(f"{{{{ {name} }}}}", known[name])
    if "{{" in text:
        sys.exit(f"this check cannot fill in {text[text.index('{{'):][:60]}")
    return text


def plain(text):
    lines = [re.sub(r"\"", "", line) for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in lines if "imagePullPolicy" not in line]


def main():
    with open(os.path.join(ROOT, "deploy/kubernetes/stepwell.yaml")) as file:
        wanted = plain(file.read())
    found = plain(rendered())
    differing = [(a, b) for a, b in zip(wanted, found) if a != b]
    if differing or len(wanted) != len(found):
        sys.exit(f"the chart differs from deploy/kubernetes/stepwell.yaml: {differing[:3]} {len(wanted)} {len(found)} lines")
    print("the chart with its default values is deploy/kubernetes/stepwell.yaml")


main()
