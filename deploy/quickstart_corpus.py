#!/usr/bin/env python3
"""Writes the text that the quickstart trains on: JSON lines {"id", "text", "source"} from Debian's documentation.

  quickstart_corpus.py --fetch PACKAGES --output TEXT.jsonl   downloads what the folder PACKAGES lacks (without root)
  quickstart_corpus.py PACKAGES --output TEXT.jsonl           uses the .deb files that are there

The packages, and how much of each, are in quickstart_packages.txt beside this file. The same .deb files give the
same bytes. Needs Python's standard library, dpkg-deb and, to fetch, apt-get.
"""
import argparse
import fnmatch
import glob
import gzip
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass

PACKAGE_LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quickstart_packages.txt")
DOCUMENT_BYTES = range(500, 400_000)  # shorter is a cross reference, longer would dominate its package


@dataclass
class Wanted:
    package: str
    megabytes: float
    pattern: str


def read_package_list(path):
    wanted = []
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    for number, line in enumerate(lines, 1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if len(fields) != 3:
            sys.exit(f"{path}:{number}: expected package, MB and glob, found {line.strip()!r}")
        wanted.append(Wanted(fields[0], float(fields[1]), fields[2]))
    return wanted


# ---- HTML ---------------------------------------------------------------------------------------------------

INVISIBLE = re.compile(r"<(script|style|head|nav|svg)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
BODY = re.compile(r"<body\b.*", re.S | re.I)
PREFORMATTED = re.compile(r"<pre\b[^>]*>(.*?)</pre\s*>", re.S | re.I)
BLOCK = re.compile(r"</?(p|div|br|li|ul|ol|tr|h[1-6]|table|dt|dd|dl|section|blockquote)\b[^>]*>", re.I)
TAG = re.compile(r"<[^>]+>")


def text_of_html(page):
    body = BODY.search(page)
    page = INVISIBLE.sub(" ", body.group(0) if body else page)
    # Lines of preformatted text are lines; elsewhere only blocks break them.
    pieces = PREFORMATTED.split(page)
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            piece = BLOCK.sub("\n", re.sub(r"\s+", " ", piece))
        pieces[i] = html.unescape(TAG.sub("", piece))
    return tidy("\n".join(pieces))


# ---- manual pages -------------------------------------------------------------------------------------------

NAMED = {
    "aq": "'", "bu": "•", "co": "©", "em": "—", "en": "–", "lq": "“", "rq": "”", "dq": '"', "ga": "`", "ti": "~",
    "ha": "^", "oq": "‘", "cq": "’", "->": "→", "<=": "≤", ">=": "≥", "mu": "×", "+-": "±", "rs": "\\", "Fo": "«",
    "Fc": "»", ":a": "ä", ":o": "ö", ":u": "ü", ":A": "Ä", ":O": "Ö", ":U": "Ü", "ss": "ß", "'e": "é", "`e": "è",
}
ESCAPE = re.compile(
    r"\\(?:(?P<font>[fs*n](?:\[[^]]*\]|\(..|[-+]?.))"  # fonts, sizes, strings, registers
    r"|(?P<motion>[hvwlLoDb]'[^']*')"
    r"|\((?P<two>..)|\[(?P<long>[^]]*)\]"
    r"|(?P<comment>\".*)"
    r"|(?P<one>.))")
ONE_LETTER = {"-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "\\": "\\", "'": "'", "`": "`", ".": "."}


def unescape_roff(line):
    def replace(match):
        name = match["two"] or match["long"]
        if name is not None:
            unicode = re.fullmatch(r"u([0-9A-F]{4,5})", name)
            return chr(int(unicode[1], 16)) if unicode else NAMED.get(name, "")
        return ONE_LETTER.get(match["one"], "") if match["one"] else ""

    return ESCAPE.sub(replace, line)


def macro_words(arguments):
    """The arguments of a macro: separated by blanks, grouped by double quotes."""
    found = re.findall(r'"((?:[^"]|"")*)"?|((?:\\.|[^\s"\\])+)', arguments)
    return [quoted or bare for quoted, bare in found]


HEADINGS = {"SH", "SS"}
BREAKS = {"PP", "P", "LP", "TP", "IP", "HP", "TQ", "br", "sp", "nf", "fi", "EX", "EE", "RS", "RE"}
SPACED = {"B", "I", "SM", "SB"}
JOINED = {"BR", "IR", "BI", "IB", "RB", "RI"}  # alternating fonts, no blanks between


def text_of_man(page):
    """Text of a man(7) page; "" for others (mdoc, or a mere .so reference)."""
    if re.search(r"^\.(Dd|so)\b", page, re.M):
        return ""
    out, paragraph, in_table = [], [], False

    def flush():
        if paragraph:
            out.append(" ".join(paragraph))
            paragraph.clear()

    for line in page.split("\n"):
        match = re.match(r"[.']\s*(\S+)\s*(.*)", line)
        if not line.startswith((".", "'")):
            if in_table:
                continue
            if line.strip():
                paragraph.append(unescape_roff(line).strip())
            else:
                flush()
        elif match:
            name, arguments = match.groups()
            in_table = name == "TS" or (in_table and name != "TE")
            words = [unescape_roff(word) for word in macro_words(arguments)]
            if name in HEADINGS:
                flush()
                out.append("\n" + " ".join(words))
            elif name in BREAKS:
                flush()
                if name in ("IP", "TP") and words and name == "IP":
                    paragraph.append(words[0])
            elif name in SPACED:
                paragraph.append(" ".join(words))
            elif name in JOINED:
                paragraph.append("".join(words))
    flush()
    return tidy("\n".join(out))


# ---- packages -----------------------------------------------------------------------------------------------

def tidy(text):
    text = "\n".join(line.strip() for line in re.sub(r"[^\S\n]+", " ", text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def text_of(path, data):
    if path.endswith(".gz"):
        data, path = gzip.decompress(data), path[:-3]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    if path.endswith(".html"):
        return text_of_html(text)
    return text_of_man(text)


def files_of(deb):
    """(path, bytes) of the regular files in a package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as unpacker:
        with tarfile.open(fileobj=unpacker.stdout, mode="r|") as archive:
            for member in archive:
                if member.isfile():
                    yield member.name.removeprefix("."), archive.extractfile(member).read()
    if unpacker.returncode != 0:
        sys.exit(f"{deb}: dpkg-deb could not unpack it; delete it and run with --fetch")


def order_of(identity):
    return hashlib.sha256(identity.encode()).digest()


def documents_of(files, wanted):
    """Documents of `wanted`, in an order that depends on their names only, up to its size."""
    budget = wanted.megabytes * 1e6
    for path in sorted((p for p in files if fnmatch.fnmatchcase(p, wanted.pattern)), key=order_of):
        text = text_of(path, files[path])
        size = len(text.encode())
        if size not in DOCUMENT_BYTES or size > budget:
            continue
        budget -= size
        yield {"id": wanted.package + path, "text": text, "source": wanted.package}


def find_deb(directory, package):
    found = sorted(glob.glob(os.path.join(glob.escape(directory), f"{package}_*.deb")))
    return found[-1] if found else None


def fetch(packages, directory):
    missing = [package for package in packages if not find_deb(directory, package)]
    if not missing:
        return
    print(f"fetching {len(missing)} packages into {directory}", file=sys.stderr)
    command = ["apt-get", "download", "-q"]
    if os.geteuid() == 0:
        command += ["-o", "APT::Sandbox::User=root"]  # the folder need not be open to user _apt
    try:
        done = subprocess.run(command + missing, cwd=directory, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        sys.exit("apt-get is not on this machine. Copy these packages of Debian 12 into "
                 f"{directory} and run without --fetch: {' '.join(missing)}")
    if done.returncode != 0:
        sys.exit("apt-get download failed (its messages are above). If the package lists are missing or old, run "
                 "`apt-get update` as root; without a network, copy the packages into "
                 f"{directory} and run without --fetch: {' '.join(missing)}")


def write_corpus(wanted, directory, output):
    documents = []
    for package in sorted({item.package for item in wanted}):
        deb = find_deb(directory, package)
        if deb is None:
            sys.exit(f"{directory} has no {package}_*.deb; run with --fetch")
        files = dict(files_of(deb))
        for item in (item for item in wanted if item.package == package):
            found = list(documents_of(files, item))
            size = sum(len(document["text"].encode()) for document in found)
            print(f"  {package:22s} {item.pattern:28s} {len(found):5d} documents {size / 1e6:6.2f} MB", file=sys.stderr)
            if not found:
                sys.exit(f"{deb}: no file matches {item.pattern}: another version of the package? "
                         "Correct quickstart_packages.txt")
            documents += found
    documents.sort(key=lambda document: order_of(document["id"]))
    temporary = output + ".partial"
    with open(temporary, "w", encoding="utf-8", newline="\n") as file:
        for document in documents:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    os.replace(temporary, output)
    total = sum(len(document["text"].encode()) for document in documents)
    print(f"{output}: {len(documents)} documents, {total / 1e6:.1f} MB of text", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="download what is missing with apt-get download")
    parser.add_argument("packages", help="folder with the .deb files")
    parser.add_argument("--output", required=True, help="the .jsonl file to write")
    arguments = parser.parse_args()
    wanted = read_package_list(PACKAGE_LIST)
    os.makedirs(arguments.packages, exist_ok=True)
    if arguments.fetch:
        fetch(sorted({item.package for item in wanted}), arguments.packages)
    write_corpus(wanted, arguments.packages, arguments.output)


if __name__ == "__main__":
    main()
