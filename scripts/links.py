#!/usr/bin/env python3
"""Checks every relative link of the Markdown files: the file is there, and so is the heading it names.

Links to other hosts are not called: a test must not depend on them.
Also: every page below docs/ can be reached from docs/README.md.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]


def pages():
    found = [path for name in TOP if os.path.exists(path := os.path.join(ROOT, name))]
    return found + sorted(glob.glob(f"{ROOT}/docs/**/*.md", recursive=True))


def without_code(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", lambda code: re.sub(r"[\[\]()]", "", code[0]), text)


def anchors(text):
    """What GitHub makes of the headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (unique := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(unique)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def main():
    texts = {}

    def text(path):
        if path not in texts:
            with open(path) as file:
                texts[path] = file.read()
        return texts[path]

    faults, links, led = [], 0, {}
    for page in pages():
        name = os.path.relpath(page, ROOT)
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text(page))):
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(to):
                faults.append(f"{name}: {target}: there is no such file")
            elif anchor and to.endswith(".md") and anchor not in anchors(text(to)):
                faults.append(f"{name}: {target}: there is no such heading")
            led.setdefault(page, set()).add(to)
    index = os.path.join(ROOT, "docs/README.md")
    reached, todo = {index}, [index]
    while todo:
        for to in led.get(todo.pop(), set()) - reached:
            reached.add(to)
            todo.append(to)
    lost = [page for page in pages() if page.startswith(f"{ROOT}/docs/") and page not in reached]
    faults += [f"{os.path.relpath(page, ROOT)}: no page that docs/README.md leads to has a link to it" for page in lost]
    print("\n".join([*faults, f"{links} links in {len(pages())} pages, {len(faults)} faults"]))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
