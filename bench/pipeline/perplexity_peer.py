#!/usr/bin/env python3
"""kenlm on the same texts: how fast, and which scores.

usage: perplexity_peer.py CORPUS.jsonl MODEL.arpa [--megabytes N] [--compare SCORES]

Runs in an environment with bench/pipeline/perplexity_peer.txt installed. Lines as they are, which is what
llm-bench-perplexity --raw scores; texts in memory; one thread, CPU seconds. --compare reads what
llm-bench-perplexity --raw --scores wrote and prints the greatest difference of a line's score, and of one by the sum of
the words' scores in double precision: kenlm adds up in single precision, which shows in long lines. The last line is
JSON.
"""

import argparse
import json
import time

import kenlm

SPACE = " \t\n\v\f\r\0"


def read_lines(path: str, megabytes: float) -> tuple[list[str], int]:
    lines, size = [], 0
    with open(path, encoding="utf-8", newline="\n") as file:
        for row in file:
            text = json.loads(row)["text"]
            size += len(text.encode())
            lines += [line for line in text.split("\n") if line.strip(SPACE)]
            if megabytes and size > megabytes * 1e6:
                break
    return lines, size


def compare(model: kenlm.Model, lines: list[str], path: str) -> dict:
    worst, worst_sum, words, count = 0.0, 0.0, 0, 0
    with open(path, encoding="utf-8") as file:
        for line, row in zip(lines, file):
            ours = json.loads(row)
            total, length, unknown = 0.0, 0, 0
            for score, _, is_unknown in model.full_scores(line):
                total, length, unknown = total + score, length + 1, unknown + is_unknown
            assert (length, unknown) == (ours["length"], ours["unknown"]), (line, ours)
            worst_sum = max(worst_sum, abs(total - ours["log10"]))
            if length <= 100:
                worst = max(worst, abs(model.score(line) - ours["log10"]))
            words, count = words + length, count + 1
    assert count == len(lines), (count, len(lines))
    return {"lines": count, "words": words, "worst_line_of_100_words": worst, "worst_sum_of_words": worst_sum}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("model")
    parser.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--compare")
    options = parser.parse_args()
    lines, size = read_lines(options.corpus, options.megabytes)
    start = time.process_time()
    model = kenlm.Model(options.model)
    load = time.process_time() - start
    start = time.process_time()
    total = sum(model.score(line) for line in lines)
    seconds = time.process_time() - start
    result = {"bench": "perplexity_peer", "MB": size / 1e6, "load_cpu_s": load, "cpu_s": seconds,
              "MB_per_s": size / 1e6 / seconds, "log10": total}
    if options.compare:
        result |= compare(model, lines, options.compare)
    print(json.dumps(result))


main()
