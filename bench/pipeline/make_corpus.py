#!/usr/bin/env python3
"""The corpus of bench/data: some 100 MB of real text in 25 languages, out of Debian packages.

usage: make_corpus.py FOLDER

Downloads the packages of corpus_packages.txt (apt-get download: nothing is installed) into FOLDER/packages and writes
FOLDER/corpus.jsonl, lines {"id", "text", "source"}: manual pages, handbooks, dictionaries, fortunes, program text. One
document in a hundred is there twice, and another one with a few words changed; their ids end in @exactN and @nearN.

The same packages give the same bytes; those of Debian 12 in 2026 gave SHA256. With newer ones it is another corpus, as
good to compare on, but not with the figures in docs/data.
"""

import gzip
import hashlib
import html
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from typing import Iterator, NamedTuple

PACKAGES = pathlib.Path(__file__).resolve().with_name("corpus_packages.txt")
SHA256 = "30670677a0a03609b63282b61d861ed35e5608fce9782ee44352356e15804ee6"
CORPUS_BYTES = 97_000_000
DOCUMENT_BYTES_MAX = 1_500_000
ARTICLE_CHARACTERS = 3000
GLOSSES_IN_A_DOCUMENT = 25
CHANGES = ("alpha", "beta", "gamma", "delta")
SKIPPED = ("changelog.gz", "copyright", "changelog.Debian.gz")

HIDDEN = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
BLOCK = re.compile(r"</?(p|div|br|li|ul|ol|tr|h[1-6]|table|pre|dt|dd|dl|section|blockquote)\b[^>]*>", re.I)
TAG = re.compile(r"<[^>]+>")
HEADINGS = ("SH", "SS")
BREAKS = ("PP", "P", "LP", "TP", "IP", "br", "sp", "HP", "EX", "EE", "nf", "fi")
FONTS = ("B", "I", "BR", "IR", "BI", "IB", "RB", "RI", "SM", "SB")
ROFF_CHARACTERS = {"aq": "'", "bu": "•", "co": "©", "em": "—", "en": "–", "lq": "“", "rq": "”", "dq": '"', "ga": "`",
                   "ti": "~", "ha": "^"}


class Document(NamedTuple):
    id: str
    text: str
    source: str
    size: int  # in bytes


def text_of_html(page: str) -> str:
    body = re.search(r"<body\b.*", page, re.S | re.I)
    page = HIDDEN.sub(" ", body[0] if body else page)
    spaces = r"[ \t\r]+" if "<pre" in page.lower() else r"[ \t\r\n]+"
    page = html.unescape(TAG.sub("", BLOCK.sub("\n", re.sub(spaces, " ", page))))
    lines = "\n".join(line.strip() for line in page.split("\n"))
    return re.sub(r"\n\s*\n+", "\n\n", lines).strip()


def unescape_roff(text: str) -> str:
    text = re.sub(r"\\f(\[\w*\]|\(..|.)", "", text)
    text = re.sub(r"\\s[-+]?\d", "", text)
    for escape, plain in (("\\-", "-"), ("\\e", "\\"), ("\\&", ""), ("\\ ", " ")):
        text = text.replace(escape, plain)
    return re.sub(r"\\\((..)", lambda found: ROFF_CHARACTERS.get(found[1], ""), text)


class RoffPage:
    """A manual page's text: a line for each paragraph and heading."""

    def __init__(self):
        self.lines, self.paragraph = [], []

    def end_paragraph(self):
        if self.paragraph:
            self.lines.append(" ".join(self.paragraph))
            self.paragraph.clear()

    def add_request(self, name: str, rest: str):
        if name in HEADINGS:
            self.end_paragraph()
            self.lines.append("\n" + rest.strip('"'))
        elif name in BREAKS:
            self.end_paragraph()
        elif name in FONTS:
            # Two fonts take turns from argument to argument, and what they set stays together.
            glue = "" if len(name) == 2 and name not in ("SM", "SB") else " "
            self.paragraph.append(re.sub(r"(?<!\\) ", glue, rest).replace('"', ""))

    def add_line(self, line: str):
        if line.startswith(('.\\"', "'\\\"", '\\"')):  # a comment
            return
        if line.startswith((".", "'")):
            if request := re.match(r"[.']\s*(\w+)\s*(.*)", line):
                self.add_request(request[1], request[2])
        elif line.strip():
            self.paragraph.append(line)
        else:
            self.end_paragraph()

    def text(self) -> str:
        self.end_paragraph()
        return re.sub(r"\n{3,}", "\n\n", unescape_roff("\n".join(self.lines))).strip()


def text_of_roff(page: str) -> str:
    out = RoffPage()
    for line in page.split("\n"):
        out.add_line(line)
    return out.text()


def decode(content: bytes) -> str:
    # Old Japanese pages: the byte that begins hiragana there is rare elsewhere.
    encodings = ("utf-8", "euc-jp" if content.count(0xA4) > 50 else "latin-1", "latin-1")
    for encoding in encodings:
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            pass
    raise AssertionError("latin-1 decodes anything")


def articles_of(dictionary: str) -> Iterator[tuple[str, str]]:
    paragraphs, size, number = [], 0, 0
    for paragraph in dictionary.split("\n\n"):
        paragraphs.append(paragraph)
        size += len(paragraph)
        if size > ARTICLE_CHARACTERS:
            yield f"#{number}", "\n\n".join(paragraphs).strip()
            paragraphs, size, number = [], 0, number + 1


def glosses_of(wordnet: str) -> Iterator[tuple[str, str]]:
    lines = [line.split("| ", 1)[1] for line in wordnet.split("\n") if "| " in line]
    glosses = [re.sub(r"\s+", " ", line).strip() for line in lines]
    for at in range(0, len(glosses), GLOSSES_IN_A_DOCUMENT):
        sentences = [gloss[:1].upper() + gloss[1:] for gloss in glosses[at:at + GLOSSES_IN_A_DOCUMENT]]
        yield f"#{at // GLOSSES_IN_A_DOCUMENT}", ". ".join(sentences) + "."


def texts_of(path: str, content: bytes) -> Iterator[tuple[str, str, str]]:
    """What is appended to the id, the text, and its kind, for each document of a package's file."""
    name = path.rpartition("/")[2]
    if name in SKIPPED or "searchindex" in name or "genindex" in name:
        return
    if path.endswith((".gz", ".dz")):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, ValueError):
            return
        path = path[:-3]
    if b"\0" in content[:4096]:
        return
    if re.search(r"/man/.*\.\d\w*$", path):
        yield "", text_of_roff(decode(content)), "man"
    elif path.endswith((".html", ".htm", ".xhtml")):
        yield "", text_of_html(decode(content)), "html"
    elif "/games/fortunes/" in path and not path.endswith((".dat", ".u8")):
        for number, fortune in enumerate(re.split(r"\n%+\n", decode(content))):
            yield f"#{number}", fortune.strip(), "fortune"
    elif path.endswith(".dict"):
        yield from ((suffix, text, "dict") for suffix, text in articles_of(decode(content)))
    elif "/wordnet/data." in path:
        yield from ((suffix, text, "gloss") for suffix, text in glosses_of(decode(content)))
    elif path.endswith((".txt", ".rst", ".pod", ".adoc", ".texi", ".md")):
        yield "", decode(content).strip(), "txt"
    elif path.endswith(".py"):
        yield "", decode(content).rstrip(), "code"


def documents_of_file(package: str, path: str, content: bytes) -> Iterator[Document]:
    for suffix, text, source in texts_of(path, content):
        size = len(text.encode("utf-8", "replace"))
        if text and size <= DOCUMENT_BYTES_MAX:
            yield Document(f"{package}{path}{suffix}", text, source, size)


def documents_of(package: str, deb: pathlib.Path, bytes_max: float) -> list[Document]:
    """Those of files drawn by chance, until there are `bytes_max` bytes."""
    documents, size = [], 0
    with tempfile.TemporaryDirectory(dir=deb.parent) as folder:
        subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
        files = sorted(os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)
        random.Random(package).shuffle(files)
        for file in map(pathlib.Path, files):
            if size > bytes_max:
                break
            if file.is_symlink():
                continue
            for document in documents_of_file(package, str(file)[len(folder):], file.read_bytes()):
                documents.append(document)
                size += document.size
                if size > bytes_max:
                    break
    return documents


def with_copies(kept: list[Document], chance: random.Random) -> list[Document]:
    copies = []
    for _ in range(len(kept) // 100):
        original = chance.choice(kept)
        copies.append(original._replace(id=f"{original.id}@exact{len(copies)}"))
        original = chance.choice(kept)
        words = original.text.split(" ")
        for _ in range(max(1, len(words) // 200)):
            words[chance.randrange(len(words))] = chance.choice(CHANGES)
        copies.append(original._replace(id=f"{original.id}@near{len(copies)}", text=" ".join(words)))
    everything = kept + copies
    chance.shuffle(everything)
    return everything


def read_packages() -> dict[str, float]:
    """Bytes at most by package."""
    lines = [line.split() for line in PACKAGES.read_text().splitlines() if not line.startswith("#")]
    return {package: float(megabytes) * 1e6 for package, megabytes in lines}


def download(packages: dict[str, float], folder: pathlib.Path) -> dict[str, pathlib.Path]:
    folder.mkdir(parents=True, exist_ok=True)
    here = {path.name.split("_")[0]: path for path in folder.glob("*.deb")}
    missing = [package for package in packages if package not in here]
    if missing:
        subprocess.run(["apt-get", "download", "-qq", *missing], cwd=folder, check=True, stdout=sys.stderr)
        here = {path.name.split("_")[0]: path for path in folder.glob("*.deb")}
    return here


def make(folder: pathlib.Path) -> pathlib.Path:
    """The corpus in `folder`, made if it is not there."""
    corpus = folder / "corpus.jsonl"
    if corpus.exists():
        return corpus
    packages = read_packages()
    debs = download(packages, folder / "packages")
    documents = []
    for package in sorted(packages, key=lambda package: debs[package].name):
        documents += documents_of(package, debs[package], packages[package])
    chance = random.Random(1)
    chance.shuffle(documents)
    kept, size = [], 0
    for document in documents:
        if size > CORPUS_BYTES:
            break
        kept.append(document)
        size += document.size
    part = corpus.with_suffix(".part")
    with part.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for document in with_copies(kept, chance):
            row = {"id": document.id, "text": document.text, "source": document.source}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    part.rename(corpus)
    return corpus


def is_the_known_one(corpus: pathlib.Path) -> bool:
    with corpus.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    corpus = make(pathlib.Path(sys.argv[1]))
    print(corpus, "the known one" if is_the_known_one(corpus) else "of other versions of the packages than docs/data")


if __name__ == "__main__":
    main()
