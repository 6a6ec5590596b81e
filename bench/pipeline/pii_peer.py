#!/usr/bin/env python3
"""datatrove's rules for personal data, e-mail and IP addresses, on the same texts: how fast.

usage: pii_peer.py CORPUS.jsonl [--megabytes N]

Runs in an environment with bench/pipeline/requirements.txt installed. Texts in memory, one thread, CPU seconds. The
last line is JSON.
"""

import argparse
import json
import time

from datatrove.pipeline.formatters import PIIFormatter
from loguru import logger

FOUND = "\x01"


def read_texts(path: str, megabytes: float) -> list[str]:
    texts, size = [], 0
    with open(path, encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
            if megabytes and size > megabytes * 1e6:
                break
    return texts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("--megabytes", type=float, default=0)
    options = parser.parse_args()
    logger.remove()
    texts = read_texts(options.corpus, options.megabytes)
    formatter = PIIFormatter(email_replacement=FOUND, ip_replacement=FOUND)
    formatter.format("The first text loads what is loaded late. It is not counted.")
    start = time.process_time()
    found = sum(formatter.format(text).count(FOUND) - text.count(FOUND) for text in texts)
    seconds = time.process_time() - start
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(json.dumps({"peer": "datatrove", "documents": len(texts), "MB": size, "cpu_s": seconds, "found": found,
                      "MB_per_s": size / seconds}))


if __name__ == "__main__":
    main()
