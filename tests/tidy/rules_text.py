"""Rules on names, whitespace, words and links: what needs no understanding of the language."""

import re
from typing import Iterator

from source_tree import CPP_SUFFIXES, Finding, SourceFile, Tree

LINE_CHARACTERS_MAX = 120
SOURCE_LINES_MAX = 800
TEST_LINES_MAX = 1000
# Where a long line is code that somebody has to read.
WRAPPED_SUFFIXES = CPP_SUFFIXES + (".py", ".cmake", ".proto", ".sh")

BANNED_NAME = re.compile(r"(^|_|-)(util|utils|helper|helpers|misc|manager|managers)(_|-|$)|^common$")
MACHINE_PATH = re.compile(r"(?<![\w.$}>])/(work|home|root|Users)/[\w.]|/tmp/b0\b|\.\./shared\b")
REGISTRY_HOST = re.compile(
    r"\b(pypi\.org|files\.pythonhosted\.org|download\.pytorch\.org|deb\.debian\.org|registry\.npmjs\.org|docker\.io"
    r"|ghcr\.io|quay\.io|nvcr\.io|gcr\.io|registry\.k8s\.io|proxy\.golang\.org|crates\.io)\b")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
FINISHABLE = re.compile(r"\bTODO\([a-z][\w.-]*\): (when|once|until|after) ")
MARKDOWN_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
# A file of the repository named in prose or in a command.
NAMED_FILE = re.compile(
    r"(?<![\w./-])((?:examples|docs|deploy|bench|tests|proto)/[\w./-]+\.(?:md|yaml|sh|py|json|proto))\b")


def _is_test(file: SourceFile) -> bool:
    return file.under("tests")


def _judged(tree: Tree) -> Iterator[SourceFile]:
    """All but these rules themselves, which have to spell what they ban."""
    return (file for file in tree if not file.under("tests/tidy"))


def file_names(tree: Tree) -> Iterator[Finding]:
    for file in tree:
        if BANNED_NAME.search(file.stem.lower()) and not file.stem.startswith("."):
            yield file.finding(1, "file-name", f"'{file.name}' says nothing: name the one thing that it holds")


def file_length(tree: Tree) -> Iterator[Finding]:
    for file in tree:
        if not (file.is_cpp or file.is_python or file.suffix == ".proto"):
            continue
        limit = TEST_LINES_MAX if _is_test(file) else SOURCE_LINES_MAX
        if len(file.lines) > limit:
            yield file.finding(limit + 1, "file-length", f"{len(file.lines)} lines, at most {limit}: split it by noun")


def whitespace(tree: Tree) -> Iterator[Finding]:
    for file in tree:
        if file.suffix in (".jsonl", ".txt") and file.name != "CMakeLists.txt":
            continue  # data
        if file.text and not file.text.endswith("\n"):
            yield file.finding(len(file.lines), "whitespace", "no newline at the end of the file")
        wrapped = file.suffix in WRAPPED_SUFFIXES or file.name == "CMakeLists.txt" or file.suffix == ""
        for number, line in enumerate(file.lines, 1):
            if "\t" in line:
                yield file.finding(number, "whitespace", "tab: use spaces")
            if line != line.rstrip():
                yield file.finding(number, "whitespace", "space at the end of the line")
            if wrapped and len(line) > LINE_CHARACTERS_MAX and not _is_quoted_text(file, number):
                message = f"{len(line)} characters, at most {LINE_CHARACTERS_MAX}"
                yield file.finding(number, "line-length", message)


def _is_quoted_text(file: SourceFile, number: int) -> bool:
    """Whether the line is (in) a raw string: text that another program reads cannot be wrapped."""
    line = file.lines[number - 1]
    if not file.is_cpp or "//" in line:
        return False
    code = re.sub(r"\s+", " ", file.code_lines[number - 1])
    return len(code) <= LINE_CHARACTERS_MAX and ('R"' in line or not code.strip(' ")(;,'))


def machine_paths(tree: Tree) -> Iterator[Finding]:
    for file in _judged(tree):
        for number, line in enumerate(file.lines, 1):
            if match := MACHINE_PATH.search(line):
                yield file.finding(number, "machine-path", f"'{match[0]}' exists on one machine only")


def registry_hosts(tree: Tree) -> Iterator[Finding]:
    for file in _judged(tree):
        for number, line in enumerate(file.lines, 1):
            if match := REGISTRY_HOST.search(line):
                message = f"{match[0]}: leave the host to the user's own pip, apt or docker configuration"
                yield file.finding(number, "registry-host", message)


def unfinished(tree: Tree) -> Iterator[Finding]:
    for file in _judged(tree):
        for number, line in enumerate(file.lines, 1):
            if UNFINISHED.search(line) and not FINISHABLE.search(line):
                message = "say who and when: 'TODO(name): when <condition>, ...', or better, do it now"
                yield file.finding(number, "unfinished", message)


def markdown_links(tree: Tree) -> Iterator[Finding]:
    for file in tree:
        if file.suffix != ".md":
            continue
        for number, line in enumerate(file.lines, 1):
            for target in MARKDOWN_LINK.findall(line):
                if problem := _broken(tree, file, target):
                    yield file.finding(number, "link", problem)


def _broken(tree: Tree, file: SourceFile, target: str) -> str:
    if re.match(r"[a-z]+:", target):
        return ""
    path, _, anchor = target.partition("#")
    where = file.path if not path else _normal(file.folder, path)
    if not tree.exists(where):
        return f"{target}: there is no {where}"
    linked = tree.files.get(where)
    if anchor and linked and linked.suffix == ".md" and anchor not in _anchors(linked):
        return f"{target}: {where} has no heading #{anchor}"
    return ""


def _normal(folder: str, path: str) -> str:
    parts = [] if path.startswith("/") else [part for part in folder.split("/") if part]
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _anchors(file: SourceFile) -> set[str]:
    headings = (line.lstrip("#").strip() for line in file.lines if re.match(r"#{1,6} ", line))
    return {re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", heading.lower())) for heading in headings}


def named_files(tree: Tree) -> Iterator[Finding]:
    for file in _judged(tree):
        if not (file.is_cpp or file.suffix in (".md", ".sh", ".proto", "")):
            continue
        for number, line in enumerate(file.lines, 1):
            for name in NAMED_FILE.findall(line):
                if not tree.exists(name) and not tree.exists(_normal(file.folder, name)):
                    yield file.finding(number, "named-file", f"there is no {name}")


RULES = (file_names, file_length, whitespace, machine_paths, registry_hosts, unfinished, markdown_links, named_files)
