#!/usr/bin/env python3
"""datatrove's filters on the same texts: how fast, and which verdicts.

usage: filters_peer.py CORPUS.jsonl [--megabytes N] [--verdicts FILE] [--compare OURS]

Runs in an environment with bench/pipeline/requirements.txt installed. The four filters in the order and with the
settings of the FineWeb data set, on texts in memory; one thread, CPU seconds. --verdicts writes a line per document as
llm-bench-filters --verdicts does; --compare reads those of llm-bench-filters --datatrove and prints how many documents
have the same verdict and reason. The last line is JSON.
"""

import argparse
import collections
import json
import time

from datatrove.data import Document
from datatrove.pipeline.filters import (C4QualityFilter, FineWebQualityFilter, GopherQualityFilter,
                                        GopherRepetitionFilter)
from loguru import logger

FILTERS = (
    ("gopher_repetition", GopherRepetitionFilter()),
    ("gopher_quality", GopherQualityFilter()),
    ("c4", C4QualityFilter(filter_no_terminal_punct=False)),
    ("fineweb", FineWebQualityFilter()),
)


def read_texts(path: str, megabytes: float) -> list[str]:
    texts, size = [], 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
            if megabytes and size > megabytes * 1e6:
                break
    return texts


def verdict_of(text: str) -> dict:
    document = Document(text=text, id="0")
    for name, quality_filter in FILTERS:
        try:
            result = quality_filter.filter(document)
        except (AssertionError, ZeroDivisionError) as error:  # faults of its own, on some texts
            return {"filter": name, "reason": type(error).__name__}
        if result is not True:
            return {"filter": name, "reason": result[1]}
    return {"filter": "", "reason": "", "after": document.text}


def compare(verdicts: list[dict], path: str) -> dict:
    same, same_keep, differing = 0, 0, collections.Counter()
    with open(path, encoding="utf-8") as file:
        for theirs, line in zip(verdicts, file):
            ours = json.loads(line)
            same_keep += (not theirs["reason"]) == (not ours["reason"])
            keys = ("filter", "reason", "after")
            if all(theirs.get(key) == ours.get(key) for key in keys):
                same += 1
            else:
                differing[f"{theirs['filter']}:{theirs['reason']} -> {ours['filter']}:{ours['reason']}"] += 1
    return {"same_verdict_and_reason": same / len(verdicts), "same_keep": same_keep / len(verdicts),
            "differing": dict(differing.most_common())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--verdicts")
    parser.add_argument("--compare")
    options = parser.parse_args()
    logger.remove()
    texts = read_texts(options.corpus, options.megabytes)
    verdict_of("The first text loads the rules. It is not counted.")
    start = time.process_time()
    verdicts = [verdict_of(text) for text in texts]
    seconds = time.process_time() - start
    if options.verdicts:
        with open(options.verdicts, "w", encoding="utf-8") as file:
            for number, verdict in enumerate(verdicts):
                file.write(json.dumps({"n": number, **verdict}) + "\n")
    size = sum(len(text.encode()) for text in texts) / 1e6
    result = {"bench": "filters_peer", "documents": len(texts), "MB": size, "cpu_s": seconds,
              "kept": sum(not verdict["reason"] for verdict in verdicts), "MB_per_s": size / seconds}
    if options.compare:
        result |= compare(verdicts, options.compare)
    print(json.dumps(result))


main()
