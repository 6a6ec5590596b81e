#!/usr/bin/env python3
"""datatrove's rules for personal data, e-mail and IP addresses, on the same texts: how fast, and what becomes of them.

usage: pii_peer.py CORPUS.jsonl [--megabytes N] [--compare CLEANED]

Runs in an environment with bench/pipeline/requirements.txt installed. Texts in memory, one thread, CPU seconds.
--compare reads what llm-bench-pii --datatrove --cleaned wrote and says how many texts became the same. The last line is
JSON.
"""

import argparse
import json
import time

from datatrove.pipeline.formatters import PIIFormatter
from loguru import logger

EMAIL, IP = "<EMAIL>", "<IPV4>"  # as llm-bench-pii has them


def read_texts(path: str, megabytes: float) -> list[str]:
    texts, size = [], 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
            if megabytes and size > megabytes * 1e6:
                break
    return texts


def found_in(text: str, cleaned: str) -> int:
    return sum(cleaned.count(mark) - text.count(mark) for mark in (EMAIL, IP))


def compare(cleaned: list[str], path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        same = [theirs == json.loads(line) for theirs, line in zip(cleaned, file)]
    return {"same": sum(same), "first_differing": [number for number, equal in enumerate(same) if not equal][:20]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--compare")
    options = parser.parse_args()
    logger.remove()
    texts = read_texts(options.corpus, options.megabytes)
    formatter = PIIFormatter(email_replacement=EMAIL, ip_replacement=IP)
    formatter.format("The first text loads what is loaded late. It is not counted.")
    start = time.process_time()
    cleaned = [formatter.format(text) for text in texts]
    seconds = time.process_time() - start
    size = sum(len(text.encode()) for text in texts) / 1e6
    result = {"peer": "datatrove", "documents": len(texts), "MB": size, "cpu_s": seconds,
              "found": sum(map(found_in, texts, cleaned)), "MB_per_s": size / seconds}
    if options.compare:
        result |= compare(cleaned, options.compare)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
