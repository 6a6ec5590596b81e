#!/usr/bin/env python3
"""Every header compiles alone: whoever includes it first must not have to know what else it needs.

    tests/tidy/headers.py --cache=FILE [--compiler=g++] [--full] [-I DIR]... [--torch-include DIR]... [ROOT]

A header that some source includes first is proven by the build; the others are compiled here, each as a
translation unit of its own. Headers that reach gRPC or LibTorch take seconds each and need --full (with -I for
generated headers, and LibTorch's folders, which hold an older protobuf and so are for those that reach it alone).
What passed is remembered by the content of the header and all it includes.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys

from rules_include import GENERATED, package_of
from source_tree import SourceFile, Tree

TORCH_PACKAGES = {"torch", "cuda"}
HEAVY_PACKAGES = {"grpc", "grpc_reflection", "protobuf"} | TORCH_PACKAGES


def proven_by_build(tree: Tree) -> set[str]:
    return {file.includes[0].path for file in tree.cpp_files if not file.is_header and file.includes}


def reached(tree: Tree, header: SourceFile) -> tuple[set[str], set[str]]:
    """The project headers that `header` includes, itself too, and the heavy packages."""
    seen, heavy, pending = set(), set(), [header.path]
    while pending:
        path = pending.pop()
        if path in seen or path not in tree.files:
            continue
        seen.add(path)
        for include in tree.files[path].includes:
            package = "protobuf" if GENERATED.match(include.path) else package_of(include.path)
            heavy |= HEAVY_PACKAGES & {package}
            pending.append(include.path)
    return seen, heavy


def fingerprint(tree: Tree, paths: set[str], command: list[str]) -> str:
    digest = hashlib.sha256(" ".join(command).encode())
    for path in sorted(paths):
        digest.update(path.encode() + b"\0" + tree.files[path].text.encode())
    return digest.hexdigest()


def compile_alone(command: list[str], root: pathlib.Path, header: str) -> str:
    """The compiler's complaint, or nothing."""
    result = subprocess.run(command + ["-x", "c++", "-"], input=f'#include "{header}"\n', cwd=root, text=True,
                            capture_output=True, check=False)
    return "" if result.returncode == 0 else result.stderr


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compiles each header alone.")
    parser.add_argument("root", nargs="?", default=str(pathlib.Path(__file__).resolve().parents[2]))
    parser.add_argument("--cache", required=True, type=pathlib.Path, help="where to remember what passed")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--full", action="store_true", help="headers with gRPC and LibTorch too")
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("--torch-include", action="append", default=[])
    return parser.parse_args()


def main() -> int:
    chosen = options()
    root = pathlib.Path(chosen.root).resolve()
    tree = Tree(root)
    command = [chosen.compiler, "-std=c++20", "-fsyntax-only", "-w", f"-I{root}"]
    command += [f"-isystem{folder}" for folder in chosen.include]
    passed = set(chosen.cache.read_text().split()) if chosen.cache.exists() else set()
    proven = proven_by_build(tree)
    pending, commands = {}, {}
    for file in tree.cpp_files:
        paths, heavy = reached(tree, file)
        skipped = heavy and not chosen.full or file.under("common/cmake", "tests", "worker/cuda")
        if file.is_header and file.path not in proven and not skipped:
            torch = chosen.torch_include if heavy & TORCH_PACKAGES else []
            commands[file.path] = command + [f"-isystem{folder}" for folder in torch]
            pending[file.path] = fingerprint(tree, paths, commands[file.path])

    todo = [path for path in sorted(pending) if pending[path] not in passed]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        complaints = dict(zip(todo, pool.map(lambda path: compile_alone(commands[path], root, path), todo)))
    for path, complaint in complaints.items():
        if complaint:
            print(f"{path} does not compile alone:\n{complaint}")
    good = [digest for path, digest in pending.items() if not complaints.get(path)]
    chosen.cache.write_text("\n".join(sorted(good)) + "\n")
    bad = len(pending) - len(good)
    print(f"headers: {len(proven)} proven by the build, {len(todo)} compiled, {len(pending) - len(todo)} unchanged, "
          f"{bad} at fault")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
