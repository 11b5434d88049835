#!/usr/bin/env python3
"""A linter for the prose of README.md and docs/: plain technical English, without fillers and stilted words.

Code, links, tables of outputs and quoted names are left alone. `prose.py WORD` shows where a word would be found.
The test `texts_use_plain_words` looks for the few words that no file may have, sources included.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What the guide alone must do; the reference is shorter of breath.
GUIDE = ("docs/tutorials/", "docs/how-to/", "docs/coming-from/", "docs/concepts.md", "docs/faq.md", "docs/comparison.md",
         "docs/install.md", "docs/README.md")
LONGEST = 40

# A pattern, and what to write.
EVERYWHERE = [
    (r"simply|easily|of course|obviously|basically|just works|please note", "leave it out"),
    (r"utili[sz]es?|utili[sz]ed|utili[sz]ing", "use"),
    (r"in order to", "to"),
    (r"leverag(e|es|ing)", "use"),
    (r"seamless(ly)?|robust|powerful|blazing(ly)?|cutting-edge|world-class|best-in-class", "say what it does"),
    (r"thereof|therein|wherein|whereby|hereby|herewith|heretofore|thereupon", "a plain sentence"),
    (r"shall", "must, or will"),
    (r"prior to", "before"),
    (r"subsequent to", "after"),
    (r"in the event that", "if"),
    (r"due to the fact that", "because"),
    (r"and/or", "or"),
    (r"etc\.?", "name the rest, or begin with \"such as\""),
    (r"as usual", "say what is meant"),
    (r"(\w+) \1", "the word once"),
    (r"it is worth noting|note that|keep in mind", "leave it out"),
    (r"allows you to", "lets you"),
    (r"we|our|us", "you, or Stepwell"),
    (r"whitelist(s|ed)?|blacklist(s|ed)?", "allow list, deny list"),
]
# Phrases that repeat a word on purpose.
FINE = {"one one", "that that", "had had"}


def prose(text):
    """The text with code and targets of links blanked, so that places stay."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r"^```.*?^```$", blank, text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.S)
    text = re.sub(r"`[^`]*`", blank, text)
    return re.sub(r"\]\([^)]*\)|https?://\S+|\"[^\"\n]*\"", blank, text)


def sentences(text):
    """(line, words) of each sentence of the paragraphs, without headings and tables."""
    kept = "\n".join("" if line.startswith(("#", "|", "<")) else re.sub(r"^(- |\d+\. )", "\n", line)
                     for line in text.split("\n"))
    for paragraph in re.split(r"\n\s*\n", kept):
        for sentence in re.split(r"[.:;?!](?:\s|$)", paragraph):
            words = sentence.split()
            if words:
                yield " ".join(words)


def main():
    patterns = [(re.compile(rf"\b(?:{word})(?![\w-])", re.I), hint) for word, hint in EVERYWHERE]
    if len(sys.argv) > 1:
        patterns = [(re.compile(rf"\b(?:{sys.argv[1]})\b", re.I), "")]
    faults = words = 0
    files = [f"{ROOT}/README.md", *sorted(glob.glob(f"{ROOT}/docs/**/*.md", recursive=True))]
    for path in files:
        name = os.path.relpath(path, ROOT)
        # The rulings quote other people's documents.
        if name.startswith("docs/conformance/"):
            continue
        with open(path) as file:
            text = prose(file.read())
        words += len(text.split())
        for n, line in enumerate(text.split("\n"), 1):
            for pattern, hint in patterns:
                for found in pattern.finditer(line):
                    if found[0].lower() in FINE:
                        continue
                    print(f"{name}:{n}: \"{found[0]}\": {hint}")
                    faults += 1
        if name.startswith(GUIDE):
            for sentence in sentences(text):
                if len(sentence.split()) > LONGEST:
                    print(f"{name}: {len(sentence.split())} words: \"{sentence[:80]}…\": two sentences")
                    faults += 1
    print(f"{words} words in {len(files)} files, {faults} faults")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
