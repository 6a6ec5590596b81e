#!/usr/bin/env python3
"""The usual way in Python to read the same files: zstandard or gzip, a line at a time, orjson.

usage: read_peer.py FILE... [--repetitions N]

Runs in an environment with bench/pipeline/requirements.txt installed. One thread, user CPU seconds, the least of
several repetitions. The last line is JSON with a row per file, as that of llm-bench-read: MB of text per second.
"""

import argparse
import gzip
import io
import json
import resource

import orjson
import zstandard


def open_lines(path: str):
    if path.endswith(".zst"):
        reader = zstandard.ZstdDecompressor().stream_reader(open(path, "rb"), read_across_frames=True)
        return io.BufferedReader(reader, 1 << 20)
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def read_once(path: str) -> dict:
    documents, size = 0, 0
    start = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    with open_lines(path) as lines:
        for line in lines:
            text = orjson.loads(line)["text"]
            documents += 1
            size += len(text)
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime - start
    return {"file": path, "documents": documents, "characters": size, "cpu_s": seconds}


def text_megabytes(path: str) -> float:
    with open_lines(path) as lines:
        return sum(len(orjson.loads(line)["text"].encode()) for line in lines) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    rows = []
    for path in options.files:
        row = min((read_once(path) for _ in range(options.repetitions)), key=lambda row: row["cpu_s"])
        size = text_megabytes(path)
        rows.append(row | {"MB": size, "MB_per_s": size / row["cpu_s"]})
    print(json.dumps({"bench": "read_peer", "files": rows}))


main()
