#!/usr/bin/env python3
"""Writes kenlm_scores.jsonl: what kenlm makes of the lines of lines.txt with each model beside it.

usage: make_fixtures.py        in an environment with kenlm (bench/pipeline/perplexity_peer.txt)

trained.arpa is of our own trainer (order 4, on made-up lines), handmade.arpa has what pruned models of other tools
have: n-grams whose shorter ones are missing, missing back-off weights, <unk> within n-grams, back-off weights above 1.
"""

import json
import pathlib

import kenlm

FOLDER = pathlib.Path(__file__).parent


def main() -> None:
    lines = (FOLDER / "lines.txt").read_text(encoding="utf-8").split("\n")[:-1]
    with open(FOLDER / "kenlm_scores.jsonl", "w", encoding="utf-8") as out:
        for name in ("trained.arpa", "handmade.arpa"):
            model = kenlm.Model(str(FOLDER / name))
            for line in lines:
                scores = [list(score) for score in model.full_scores(line)]
                fragment = [list(score) for score in model.full_scores(line, bos=False, eos=False)]
                row = {"model": name, "line": line, "score": model.score(line), "words": scores, "fragment": fragment}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")


main()
