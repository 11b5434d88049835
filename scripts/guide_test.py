#!/usr/bin/env python3
"""What the checks of the guide must notice: each planted fault is found, and nothing else is."""

import os
import re
import tempfile
import unittest

import guide
import links
import prose


class Outputs(unittest.TestCase):
    def test_what_changes_from_run_to_run_is_the_same(self):
        written = "run_…  completed  2026-11-19T22:37:46Z  hello (1)  2.0s\n"
        printed = "run_01a1f5efd8087189859b064ea5303ea0 completed    2027-01-01T00:00:00Z  hello (1)  13ms\n"
        self.assertTrue(guide.matches(written, printed))

    def test_anything_else_is_not(self):
        self.assertFalse(guide.matches("run_…  completed  TIME\n", "run_01a1f5efd8087189  failed  TIME\n"))
        self.assertFalse(guide.matches("a\nb\n", "a\n"))
        self.assertFalse(guide.matches("a\n", "a\nb\n"))

    def test_an_ellipsis_stands_for_text_or_lines(self):
        self.assertTrue(guide.matches("a … c\n", "a b c\n"))
        self.assertTrue(guide.matches("a\n…\nd\n", "a\nb\nc\nd\n"))
        self.assertTrue(guide.matches("a\n…\nd\n", "a\nd\n"))
        self.assertFalse(guide.matches("a\n…\nd\n", "a\nb\n"))


class Pages(unittest.TestCase):
    def page(self, text):
        """What is wrong with a page that runs without a binary."""
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write(text)
            file.flush()
            return guide.run(guide.Page(file.name, False))[1]

    def test_a_page_that_says_what_happens_passes(self):
        text = "Save this as `a.txt`:\n\n```text\nhello\n```\n\n```sh\ncat a.txt\n```\n\n```text\nhello\n```\n"
        self.assertIsNone(self.page(text))

    def test_a_wrong_output_is_noticed(self):
        self.assertIn("printed\nhello", self.page("```sh\necho hello\n```\n\n```text\nhullo\n```\n"))

    def test_a_command_that_fails_is_noticed(self):
        self.assertIn("exit code 3, not 0", self.page("```sh\n(exit 3)\n```\n"))
        self.assertIn("exit code 0, not 1", self.page("<!-- run: exit 1 -->\n```sh\ntrue\n```\n"))
        self.assertIsNone(self.page("<!-- run: exit 1 -->\n```sh\nfalse\n```\n"))

    def test_a_block_that_nothing_uses_is_noticed(self):
        self.assertIn("neither saved as a file nor run", self.page("```yaml\nname: lost\n```\n"))
        self.assertIn("no commands before this", self.page("```text\nlost\n```\n"))

    def test_a_server_that_does_not_start_is_noticed(self):
        self.assertIn("not ready:\nno", self.page("<!-- run: background -->\n```sh\nbash -c 'echo no; exit 1'\n```\n"))

    def test_variables_and_files_stay_from_block_to_block(self):
        text = "```sh\nA=1\nmkdir b && cd b\n```\n\n```sh\necho $A; basename $PWD\n```\n\n```text\n1\nb\n```\n"
        self.assertIsNone(self.page(text))


class Alerts(unittest.TestCase):
    def test_the_rules_name_metrics_that_there_are(self):
        with open(f"{guide.ROOT}/docs/how-to/alerting.md") as rules, open(f"{guide.ROOT}/docs/operations.md") as table:
            named = set(re.findall(r"\bstepwell_[a-z_]+", rules.read().split("```yaml")[1].split("```")[0]))
            there = set(re.findall(r"^\| `(stepwell_[a-z_]+)`", table.read(), re.M))
        self.assertGreater(len(named), 4)
        self.assertEqual({name.removesuffix("_bucket") for name in named} - there, set())


class Links(unittest.TestCase):
    def test_anchors_are_those_of_github(self):
        text = "# What `it` does\n## At most once\n## At most once\n```sh\n# no heading\n```\n### [A](b.md), B & C\n"
        self.assertEqual(links.anchors(text), {"what-it-does", "at-most-once", "at-most-once-1", "a-b--c"})

    def test_code_has_no_links(self):
        self.assertNotIn("](", links.without_code("`[a](b)`\n```\n[a](b)\n```\n"))


class Words(unittest.TestCase):
    def found(self, text):
        return [word for word, _ in prose.EVERYWHERE if re.search(rf"\b(?:{word})(?![\w-])", prose.prose(text), re.I)]

    def test_fillers_are_found_in_prose_only(self):
        self.assertEqual(len(self.found("You simply run it in order to see the the end.")), 3)
        self.assertEqual(self.found("`simply`\n```\nin order to\n```\n[x](simply.md) \"simply\"\n"), [])

    def test_sentences_are_counted_without_tables(self):
        counted = list(prose.sentences("# A heading. B\n\nOne two. Three\nfour!\n\n| a. | b |\n- five\n- six\n"))
        self.assertEqual(counted, ["One two", "Three four", "five", "six"])


if __name__ == "__main__":
    # Nothing here needs the binary.
    guide.BINARY = os.devnull
    unittest.main()
