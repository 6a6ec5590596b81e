"""Rules on includes: direction (common/cmake/layers.cmake), order, and what a header opens with."""

import re
from typing import Iterator, Optional

import cpp_scan
from source_tree import Finding, SourceFile, Tree

LAYERS_FILE = "common/cmake/layers.cmake"
# Package (as layers.cmake names it) of a third-party header, by how its path begins.
PACKAGES = (
    ("absl/", "absl"), ("grpcpp/ext/proto_server_reflection", "grpc_reflection"), ("grpcpp/", "grpc"),
    ("grpc/", "grpc"), ("re2/", "re2"), ("hs/", "vectorscan"),
    ("google/protobuf/", "protobuf"), ("torch/", "torch"), ("ATen/", "torch"), ("c10/", "torch"), ("caffe2/", "torch"),
    ("gloo/", "torch"), ("soci/", "sqlite"), ("sqlite3.h", "sqlite"), ("nlohmann/", "json"), ("openssl/", "openssl"),
    ("xxhash.h", "xxhash"), ("yaml-cpp/", "yaml"), ("CLI/", "cli11"), ("httplib.h", "httplib"),
    ("prometheus/", "prometheus"), ("unicode/", "icu"), ("cld2/", "cld2"), ("fasttext/", "fasttext"),
    ("simdjson.h", "simdjson"), ("zstd", "zstd"), ("isa-l/", "isal"), ("arrow/", "arrow"),
    ("parquet/", "arrow"), ("zlib.h", "zlib"),
    ("dlfcn.h", "dl"), ("gtest/", "gtest"), ("gmock/", "gtest"), ("benchmark/", "benchmark"), ("nccl.h", "cuda"),
    ("cuda", "cuda"), ("nvml.h", "nvml"), ("elfutils/", "dw"),
)
# <vector>, <sys/wait.h>, <unistd.h>: no dot, or C and Linux.
STANDARD = re.compile(
    r"[a-z_]+$|(sys|linux|netinet|arpa|net|bits|asm)/[\w/]+\.h$|(fcntl|unistd|signal|poll|pthread|sched|dirent|netdb"
    r"|ifaddrs|termios|pwd|grp|errno|time|spawn|getopt|syslog|stdio|stdlib|string|limits|malloc|immintrin|omp|endian"
    r"|elf|link|cxxabi|execinfo|ucontext|math|stdint|dlfcn|glob|fnmatch|ftw|sysexits|cpuid|inttypes|mqueue"
    r"|semaphore)\.h$")
GENERATED = re.compile(r"llmctl/v\d+/\w+(\.grpc)?\.pb\.h$")
OWN, STANDARD_RANK, THIRD_PARTY, PROJECT = range(4)
RANK_NAMES = ("the own header", "the standard library", "third party", "the project")


def package_of(path: str) -> Optional[str]:
    return next((package for prefix, package in PACKAGES if path.startswith(prefix)), None)


def read_layers(tree: Tree) -> dict[str, tuple[set[str], set[str]]]:
    """Folder -> (folders it may use, packages it may use)."""
    text = re.sub(r"#.*", "", tree.files[LAYERS_FILE].text) if LAYERS_FILE in tree.files else ""
    layers = {}
    for row in re.findall(r"^llm_layer\(([^)]*)\)", text, re.MULTILINE):
        words = row.split()
        deps, packages, into = {words[0]}, {"absl", "threads"}, None
        for word in words[1:]:
            if word in ("DEPS", "EXTERNAL"):
                into = deps if word == "DEPS" else packages
            else:
                into.add(word)
        # gRPC's own headers and package bring protobuf's.
        layers[words[0]] = (deps, packages | ({"protobuf"} if "grpc" in packages else set()))
    return layers


def layer_of(folder: str, layers: dict) -> Optional[str]:
    while folder and folder not in layers:
        folder = folder.rpartition("/")[0]
    return folder or None


def direction(tree: Tree) -> Iterator[Finding]:
    layers = read_layers(tree)
    for file in tree.cpp_files:
        layer = layer_of(file.folder, layers)
        if file.under("tests", "bench", "examples", "common/cmake") or layer is None:
            continue
        for include in file.includes:
            if problem := _against_layer(include, layer, layers):
                yield file.finding(include.line, "direction", problem)


def _against_layer(include: cpp_scan.Include, layer: str, layers: dict) -> str:
    deps, packages = layers[layer]
    if GENERATED.match(include.path):
        target = "proto"
    elif (package := package_of(include.path)) is not None:
        if package in packages or package == "cuda" and layer == "worker/cuda":
            return ""
        return f"{layer} may not use package {package} ({include.path}): see its row in {LAYERS_FILE}"
    elif include.quote == "<":
        if STANDARD.match(include.path):
            return ""
        return f"<{include.path}> belongs to no known package: add it to {LAYERS_FILE} and tests/tidy/rules_include.py"
    else:
        target = layer_of(include.path.rpartition("/")[0], layers)
        if target is None:
            return f'"{include.path}" is not a full path from the root into a folder of {LAYERS_FILE}'
    if target in deps:
        return ""
    return f"{layer} may not use {target} ({include.path}): see its row in {LAYERS_FILE}"


def order(tree: Tree) -> Iterator[Finding]:
    for file in tree.cpp_files:
        highest = OWN
        for number, group in enumerate(_groups(file)):
            ranks = {_rank(file, include) for include in group}
            if number == 0 and ranks == {PROJECT} and (len(group) == 1 or file.under("tests")):
                ranks = {OWN}  # the interface that the file implements, what the test is about
            if len(ranks) > 1:
                names = " and ".join(RANK_NAMES[rank] for rank in sorted(ranks))
                message = f"{names} in one group: separate them by a blank line"
                yield file.finding(group[0].line, "include-order", message)
            elif min(ranks) < highest:
                message = f"{RANK_NAMES[min(ranks)]} after {RANK_NAMES[highest]}: own, std, third party, project"
                yield file.finding(group[0].line, "include-order", message)
            highest = max(ranks | {highest})


def _groups(file: SourceFile) -> list[list[cpp_scan.Include]]:
    groups, last = [], None
    for include in file.includes:
        if last is None or include.line != last + 1:
            groups.append([])
        groups[-1].append(include)
        last = include.line
    return groups


def _rank(file: SourceFile, include: cpp_scan.Include) -> int:
    if include.quote == '"' and _is_own_header(file, include.path):
        return OWN
    if package_of(include.path) not in (None, "dl"):
        return THIRD_PARTY
    if include.quote == "<":
        return STANDARD_RANK if STANDARD.match(include.path) else THIRD_PARTY
    return PROJECT


def _is_own_header(file: SourceFile, path: str) -> bool:
    return not file.is_header and path == f"{file.folder}/{file.stem}.h"


def header_opening(tree: Tree) -> Iterator[Finding]:
    for file in tree.cpp_files:
        if not file.is_header:
            continue
        code_lines = [number for number, line in enumerate(file.code_lines, 1) if line.strip()]
        first = code_lines[0] if code_lines else 1
        if file.lines[first - 1:first] != ["#pragma once"]:
            yield file.finding(first, "pragma-once", "the first line that is no comment must be '#pragma once'")
        if not file.text.startswith("// ") or first == 1:
            yield file.finding(1, "idea", "a header opens with its idea: the problem, the invariants, who may call it")


def using_namespace_in_header(tree: Tree) -> Iterator[Finding]:
    for file in tree.cpp_files:
        for number, line in enumerate(file.code_lines, 1):
            if file.is_header and re.match(r"\s*using\s+namespace\b", line):
                yield file.finding(number, "using-namespace", "a header must not open a namespace on its users")


RULES = (direction, order, header_opening, using_namespace_in_header)
