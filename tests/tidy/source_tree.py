"""The tree that the house rules look at: its files, each read once.

Everything below the root counts except what .gitignore keeps out: build folders, dependencies, caches. A rule
is a function from a Tree to Findings; a finding names file, line, rule and what to do instead.
"""

import dataclasses
import functools
import os
import pathlib
import re
from typing import Iterator

import cpp_scan

SKIPPED_FOLDERS = re.compile(r"(\.git|\.deps|\.llmctl|\.cache|__pycache__|build|build-.*)$")
CPP_SUFFIXES = (".cc", ".h", ".cpp", ".cu", ".cuh")
TEXT_SUFFIXES = CPP_SUFFIXES + (
    ".py", ".cmake", ".txt", ".proto", ".md", ".yaml", ".yml", ".json", ".jsonl", ".sh", ".sql", ".toml", ".service")


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


class SourceFile:
    """One text file. `path` is relative to the root, with forward slashes."""

    def __init__(self, path: str, text: str):
        self.path = path
        self.text = text
        self.folder, _, self.name = path.rpartition("/")
        self.stem, self.suffix = os.path.splitext(self.name)
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()

    def under(self, *folders: str) -> bool:
        return any(self.path == folder or self.path.startswith(folder + "/") for folder in folders)

    @property
    def is_cpp(self) -> bool:
        return self.suffix in CPP_SUFFIXES

    @property
    def is_header(self) -> bool:
        return self.suffix in (".h", ".cuh")

    @property
    def is_python(self) -> bool:
        return self.suffix == ".py" or self.text.startswith("#!/usr/bin/env python3")

    @functools.cached_property
    def code(self) -> str:
        """C++ without comments and literals; lines and columns stay where they were."""
        return cpp_scan.blank_comments_and_literals(self.text)

    @functools.cached_property
    def code_lines(self) -> list[str]:
        return self.code.split("\n")

    @functools.cached_property
    def includes(self) -> list[cpp_scan.Include]:
        return cpp_scan.includes(self.text)

    @functools.cached_property
    def functions(self) -> list[cpp_scan.Function]:
        return cpp_scan.functions(self.code)

    def finding(self, line: int, rule: str, message: str) -> Finding:
        return Finding(self.path, line, rule, message)


class Tree:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.files = {file.path: file for file in _read_files(root)}

    def __iter__(self) -> Iterator[SourceFile]:
        return iter(self.files.values())

    @functools.cached_property
    def cpp_files(self) -> list[SourceFile]:
        return [file for file in self if file.is_cpp]

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()


def _read_files(root: pathlib.Path) -> Iterator[SourceFile]:
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if not SKIPPED_FOLDERS.match(name))
        for name in sorted(names):
            full = pathlib.Path(folder) / name
            if full.is_symlink() or not full.is_file():
                continue
            is_script = "." not in name and full.stat().st_mode & 0o100
            if name.endswith(TEXT_SUFFIXES) or is_script:
                try:
                    yield SourceFile(full.relative_to(root).as_posix(), full.read_text(encoding="utf-8"))
                except UnicodeDecodeError:
                    # Test data may be broken on purpose; code and docs may not, and would fail to build.
                    continue
