"""Grows a corpus by varied copies: as much of every kind of text at any size, and no more duplicates than there were.

    grow_corpus.py CORPUS.jsonl OUT.jsonl --gigabytes=4

The first copy is the corpus itself. In every further one each fifth word, chosen by a hash of the copy's number, the
document's and the word's place, becomes another word of the same document, so that no shingle of five words is left
as it was, while lengths, alphabets and the share of stop words stay; every document has an id of its own.
"""

import argparse
import json
import pathlib
import random

WORDS_PER_CHANGE = 5


def varied(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    words = text.split()
    if len(words) < WORDS_PER_CHANGE:
        return f"{text} {chance.randrange(1 << 40)}"
    out = []
    for line in lines:
        parts = line.split(" ")
        for at in range(chance.randrange(WORDS_PER_CHANGE), len(parts), WORDS_PER_CHANGE):
            if parts[at]:
                parts[at] = words[chance.randrange(len(words))]
        out.append(" ".join(parts))
    return "\n".join(out)


def grow(corpus: pathlib.Path, out: pathlib.Path, size: int):
    """Writes at least `size` bytes of JSON lines, and less than a document more."""
    with corpus.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    written = copy = 0
    with out.open("w", encoding="utf-8") as file:
        while written < size:
            for number, document in enumerate(documents):
                text = document["text"]
                if copy > 0:
                    text = varied(text, random.Random(copy * len(documents) + number))
                line = json.dumps({"id": f"{document['id']}+{copy}", "text": text}, ensure_ascii=False) + "\n"
                file.write(line)
                written += len(line.encode())
                if written >= size:
                    break
            copy += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--gigabytes", type=float, required=True)
    options = parser.parse_args()
    grow(options.corpus, options.out, int(options.gigabytes * 1e9))


if __name__ == "__main__":
    main()
