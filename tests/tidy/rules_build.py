"""Dead files: a source that no CMakeLists.txt names, a header that nobody includes, a test that nobody runs."""

import re
from typing import Iterator

from source_tree import Finding, SourceFile, Tree


def dead_sources(tree: Tree) -> Iterator[Finding]:
    for file in tree:
        source = file.is_cpp and not file.is_header
        python_test = file.under("tests") and re.match(r"(test_\w+|\w+_test)\.py$", file.name)
        if (source or python_test) and not _named_by_cmake(tree, file):
            yield file.finding(1, "dead-file", "no CMakeLists.txt above it names it")


def _named_by_cmake(tree: Tree, file: SourceFile) -> bool:
    folder = file.folder
    while True:
        lists = tree.files.get(f"{folder}/CMakeLists.txt" if folder else "CMakeLists.txt")
        relative = file.path[len(folder) + 1:] if folder else file.path
        if lists and re.search(rf"(?<![\w./-]){re.escape(relative)}(?![\w.-])", lists.text):
            return True
        # tests/integration/test_x.py may be named through a list of stems.
        if lists and file.is_python and re.search(rf"(?<![\w./-]){re.escape(file.stem)}(?![\w.-])", lists.text):
            return True
        if not folder:
            return False
        folder = folder.rpartition("/")[0]


def dead_headers(tree: Tree) -> Iterator[Finding]:
    included = {include.path for file in tree.cpp_files for include in file.includes}
    cmake = "\n".join(file.text for file in tree if file.suffix == ".cmake" or file.name == "CMakeLists.txt")
    for file in tree.cpp_files:
        if file.is_header and file.path not in included and file.path not in cmake:
            yield file.finding(1, "dead-file", "nobody includes this header")


RULES = (dead_sources, dead_headers)
