"""The quickstart's corpus: what becomes of manual pages, HTML and packages."""
import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "deploy"))
sys.dont_write_bytecode = True
import quickstart_corpus as corpus  # noqa: E402


class ManPages(unittest.TestCase):
    def test_macros_and_escapes_become_plain_text(self):
        page = "\n".join([
            r".\" a comment", ".TH LS 1", ".SH NAME", r"ls \- list", r"\fBdirectory\fR contents.", ".PP",
            r"Use", r".BR ls (1)", r"or \(lqdir\(rq and \[u00E9]; a back\eslash.", ".TP", r".B \-a , \-\-all",
            "do not ignore.", ".TS", "tab | le", ".TE", "The end."])
        self.assertEqual(corpus.text_of_man(page),
                         "NAME\nls - list directory contents.\n"
                         "Use ls(1) or “dir” and é; a back\\slash.\n"
                         "-a , --all do not ignore. The end.")

    def test_references_and_mdoc_give_nothing(self):
        self.assertEqual(corpus.text_of_man(".so man1/ls.1\n"), "")
        self.assertEqual(corpus.text_of_man(".Dd May 1, 2020\n.Dt LS 1\ntext\n"), "")


class Html(unittest.TestCase):
    def test_markup_goes_and_blocks_break_lines(self):
        page = ("<html><head><title>no</title></head><body><nav>no</nav><p>One\n two &amp; <b>three</b>.</p>"
                "<script>no()</script><pre>a\n  b</pre><li>item</li></body></html>")
        self.assertEqual(corpus.text_of_html(page), "One two & three.\n\na\nb\n\nitem")


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        tree = os.path.join(self.folder.name, "tree")
        os.makedirs(os.path.join(tree, "DEBIAN"))
        os.makedirs(os.path.join(tree, "usr/share/man/man1"))
        with open(os.path.join(tree, "DEBIAN/control"), "w") as control:
            control.write("Package: pages\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: d\n")
        for i in range(20):
            with gzip.open(os.path.join(tree, f"usr/share/man/man1/p{i}.1.gz"), "wt") as page:
                page.write(f".TH P{i} 1\n.SH NAME\n" + f"page number {i} tells a story. " * 40)
        deb = os.path.join(self.folder.name, "pages_1_all.deb")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, deb], check=True, stdout=subprocess.DEVNULL)

    def write(self, megabytes, name):
        output = os.path.join(self.folder.name, name)
        with contextlib.redirect_stderr(io.StringIO()):
            corpus.write_corpus([corpus.Wanted("pages", megabytes, "*/man/man1/*.gz")], self.folder.name, output)
        with open(output, "rb") as file:
            return file.read()

    def test_the_same_packages_give_the_same_bytes(self):
        first = self.write(1, "a.jsonl")
        self.assertEqual(first, self.write(1, "b.jsonl"))
        documents = [json.loads(line) for line in first.splitlines()]
        self.assertEqual(len(documents), 20)
        self.assertEqual(set(documents[0]), {"id", "text", "source"})

    def test_the_size_is_kept_and_a_larger_one_adds(self):
        few = set(self.write(0.01, "a.jsonl").splitlines())
        more = set(self.write(0.02, "b.jsonl").splitlines())
        self.assertLessEqual(sum(len(json.loads(line)["text"]) for line in few), 10_000)
        self.assertLess(few, more)

    def test_a_missing_package_says_what_to_do(self):
        with self.assertRaisesRegex(SystemExit, "run with --fetch"):
            corpus.write_corpus([corpus.Wanted("absent", 1, "*")], self.folder.name, "/nowhere")

    def test_the_list_of_packages_is_well_formed(self):
        wanted = corpus.read_package_list(corpus.PACKAGE_LIST)
        self.assertGreater(len(wanted), 5)
        self.assertLess(sum(item.megabytes for item in wanted), 25)


if __name__ == "__main__":
    unittest.main()
