#!/usr/bin/env python3
"""Says how well the quickstart's model has learned.

  quickstart_report.py --checkpoint DIR --data DIR --text TEXT.jsonl --sample FILE

Two figures: the validation loss beside the unigram entropy of the text (the loss of the best model that ignores
context), and the share of the sample's words, of three letters and more, that occur in the text. Ends with 1 when
the loss is above 0.65 of the entropy or fewer than 60 % of the words occur: then something is wrong.
"""
import argparse
import glob
import json
import os
import re
import sys

LOSS_SHARE_MAX = 0.65
WORD_SHARE_MIN = 0.60
WORD = re.compile(r"[^\W\d_]{3,}")


def words_of(text):
    return [word.lower() for word in WORD.findall(text)]


def last_validation_loss(job_directory):
    """Of the newest generation that validated."""
    loss = None
    paths = glob.glob(os.path.join(job_directory, "curves", "*.jsonl"))
    for path in sorted(paths, key=lambda p: int(re.search(r"-g(\d+)\.jsonl$", p).group(1))):
        with open(path, encoding="utf-8") as curve:
            for line in curve:
                loss = json.loads(line).get("validation_loss", loss)
    if loss is None:
        sys.exit(f"{job_directory}/curves: no validation loss; is training.validation.everySteps 0?")
    return loss


def known_words(text_path):
    known = set()
    with open(text_path, encoding="utf-8") as lines:
        for line in lines:
            known.update(words_of(json.loads(line)["text"]))
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("checkpoint", "data", "text", "sample"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()

    loss = last_validation_loss(os.path.dirname(arguments.checkpoint))
    with open(os.path.join(arguments.data, "manifest.json"), encoding="utf-8") as manifest:
        entropy = json.load(manifest)["unigram_entropy"]
    with open(arguments.sample, encoding="utf-8", errors="replace") as sample:
        written = words_of(sample.read())
    known = known_words(arguments.text)
    share = sum(word in known for word in written) / max(1, len(written))

    print(f"Validation loss {loss:.3f} nats a token, {loss / entropy:.2f} of the text's unigram entropy {entropy:.3f}")
    print(f"{share:.0%} of the sample's {len(written)} words occur in the text")
    return 0 if loss <= LOSS_SHARE_MAX * entropy and share >= WORD_SHARE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
