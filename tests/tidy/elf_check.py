#!/usr/bin/env python3
"""LibTorch and protobuf never meet in one program: LibTorch exports symbols of an old protobuf of its own. Nor do
Arrow and protobuf: Arrow's library has another copy of it and of gRPC within.

    tests/tidy/elf_check.py --bin=DIR --no-grpc=PROGRAM... --no-torch=PROGRAM... --no-arrow=PROGRAM...

Each named program must exist. Reads the ELF files with binutils: the libraries they need, the symbols they define.
"""

import argparse
import pathlib
import re
import subprocess
import sys

GRPC_LIBRARY = re.compile(r"lib(protobuf|grpc|gpr|upb)")
TORCH_LIBRARY = re.compile(r"lib(torch|c10)")
ARROW_LIBRARY = re.compile(r"lib(arrow|parquet)")
GRPC_SYMBOL = re.compile(r"\b(google::protobuf|grpc)::")


def output(*command) -> str:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def needed(program: pathlib.Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program))


def faults(program: pathlib.Path, library: re.Pattern, symbol: re.Pattern | None) -> list[str]:
    if not program.exists():
        return [f"{program} is not there: build it first"]
    found = [f"{program.name} needs {name}" for name in needed(program) if library.match(name)]
    if symbol:
        defined = output("nm", "--demangle", "--defined-only", program).splitlines()
        found += [f"{program.name} defines {line}" for line in defined if symbol.search(line)][:5]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--no-grpc", nargs="*", default=[])
    parser.add_argument("--no-torch", nargs="*", default=[])
    parser.add_argument("--no-arrow", nargs="*", default=[])
    chosen = parser.parse_args()
    found = []
    for name in chosen.no_grpc:
        found += faults(chosen.bin / name, GRPC_LIBRARY, GRPC_SYMBOL)
    for name in chosen.no_torch:
        found += faults(chosen.bin / name, TORCH_LIBRARY, None)
    for name in chosen.no_arrow:
        found += faults(chosen.bin / name, ARROW_LIBRARY, None)
    for fault in found:
        print(fault)
    programs = {*chosen.no_grpc, *chosen.no_torch, *chosen.no_arrow}
    print(f"elf: {len(programs)} programs, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
