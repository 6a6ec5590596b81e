#!/usr/bin/env python3
"""The whole pipeline, from JSON lines to shards: MB of text per CPU second, and what a second thread brings.

    whole.py PART --programs=FOLDER --tokenizer=tokenizer.json --work=FOLDER [--kept] [--cores=0,1]

With --kept the corpus is what survives of PART: no document is dropped early, and all of them are encoded. The last
line is JSON: MB_per_s (one thread, CPU seconds) and two_threads (its wall time, over that of two).
"""

import argparse
import array
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time

STAGES = "quality: {}\nexactDedup: {}\nnearDedup: {}\n"


def prepare(options, corpus, name, tokenizer, threads):
    """CPU and wall seconds, and the dataset."""
    output = options.work / name
    shutil.rmtree(output, ignore_errors=True)
    spec = options.work / f"{name}.yaml"
    spec.write_text("apiVersion: llmctl/v1\nkind: Corpus\nmetadata: {name: bench}\n"
                    f"output: {output}\nthreads: {threads}\nvalidationFraction: 0\ntokenizer: {tokenizer}\n"
                    f"sources: [{{name: corpus, paths: [{corpus}]}}]\n{STAGES}")
    began = time.monotonic()
    process = subprocess.Popen([options.programs / "llmctl", "data", "prepare", spec], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"llmctl data prepare {spec} failed")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began, output


def survivors(options, corpus):
    """Documents of a dataset of bytes, as JSON lines."""
    _, _, dataset = prepare(options, corpus, "survivors", "byte", 1)
    index = (dataset / "train.idx").read_bytes()
    count, = struct.unpack_from("<Q", index, 18)
    lengths = struct.unpack_from(f"<{count}i", index, 34)
    tokens = array.array("H", (dataset / "train.bin").read_bytes())
    path = options.work / "survivors.jsonl"
    at = 0
    with path.open("w", encoding="utf-8") as out:
        for length in lengths:
            text = bytes(tokens[at:at + length - 1].tolist()).decode("utf-8")  # its last token ends the document
            out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            at += length
    return path


def text_bytes(corpus):
    with corpus.open(encoding="utf-8") as lines:
        return sum(len(json.loads(line)["text"].encode()) for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--cores", help="where the run with two threads may be (default: where this program is)")
    options = parser.parse_args()
    corpus = survivors(options, options.part) if options.kept else options.part
    megabytes = text_bytes(corpus) / 1e6
    cpu, wall, dataset = min(prepare(options, corpus, "whole", options.tokenizer, 1) for _ in range(2))
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})
    _, wall_of_two, _ = prepare(options, corpus, "whole-two", options.tokenizer, 2)
    total = json.loads((dataset / "report.json").read_text())["total"]
    print(json.dumps({"MB": round(megabytes, 1), "kept_documents": total["kept"]["documents"],
                      "documents": total["read"]["documents"], "MB_per_s": round(megabytes / cpu, 2),
                      "two_threads": round(wall / wall_of_two, 2)}))


if __name__ == "__main__":
    main()
