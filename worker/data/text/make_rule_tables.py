#!/usr/bin/env python3
"""Prints rule_tables.cc: the character classes and word lists of spaCy's English rules and of datatrove's filters.

usage: make_rule_tables.py > rule_tables.cc      (in a virtual environment with spacy==3.8.18 and datatrove==0.10.1)

Both packages are regular expressions over hand-written lists. Each class is found by asking the expression about every
code point, so that quirks of a list ("|" inside a bracket) come along.
"""

import re

import spacy
from datatrove.utils.text import PUNCTUATION, TERMINAL_PUNCTUATION
from spacy.lang import char_classes as classes
from spacy.lang import punctuation
from spacy.pipeline import Sentencizer
from spacy.symbols import ORTH

LINE_CHARACTERS = 116


def single(entries: list[str]) -> str:
    """An expression for those of `entries` that stand for one character without a condition."""
    return "|".join(entry for entry in entries if entry.strip() and not re.search(r"\(\?|\.\.|^[A-Z'’].", entry)
                    and len(entry.replace("\\", "")) == 1 or entry.startswith("["))


# Bit i of a class mask, in the order of CharacterClass (characters.h).
CLASSES = (
    f"[{classes.ALPHA}]",
    f"[{classes.ALPHA_LOWER}]",
    f"[{classes.ALPHA_UPPER}]",
    f"[{classes.CONCAT_QUOTES}]",
    f"[{classes.ICONS}]",
    single(punctuation.TOKENIZER_PREFIXES),
    single(punctuation.TOKENIZER_SUFFIXES),
    next(entry for entry in punctuation.TOKENIZER_SUFFIXES if entry.startswith("(?<=[0-9") and entry.endswith(r"\."))[
        len("(?<="):-len(r")\.")],
    single(classes.LIST_CURRENCY),
    "[" + "".join(map(re.escape, sorted(Sentencizer.default_punct_chars))) + "]",
    "[" + "".join(map(re.escape, sorted(TERMINAL_PUNCTUATION))) + "]",
    "[" + "".join(map(re.escape, sorted(set(PUNCTUATION) | TERMINAL_PUNCTUATION))) + "]",
)


def mask_runs() -> list[tuple[int, int]]:
    """(first code point, mask) of each run of code points with the same mask."""
    expressions = [re.compile(expression) for expression in CLASSES]
    runs, last = [], -1
    for code in range(0x110000):
        mask = 0
        for bit, expression in enumerate(expressions):
            if expression.fullmatch(chr(code)):
                mask |= 1 << bit
        if mask != last:
            runs.append((code, mask))
            last = mask
    return runs


def exceptions() -> list[str]:
    """spaCy's special cases, their words joined by a space."""
    found = []
    for text, words in sorted(spacy.blank("en").tokenizer.rules.items()):
        if not text.strip():
            continue  # white space is a word of its own without a rule too
        found.append(" ".join(word.get(ORTH) or word["ORTH"] for word in words))
    return found


def literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def wrap(items: list[str]) -> str:
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > LINE_CHARACTERS:
            lines.append("    " + line)
            line = ""
        line += (" " if line else "") + item + ","
    return "\n".join(lines + ["    " + line])


def main() -> None:
    units = [unit for unit in classes.LIST_UNITS if unit != "%"] + ["%"]
    prefixes = [entry.replace("\\", "") for entry in classes.LIST_CURRENCY if len(entry.replace("\\", "")) > 1]
    print('// Written by make_rule_tables.py from spaCy %s (MIT licence) and datatrove 0.10.1 (Apache 2.0 licence).'
          % spacy.__version__)
    print('#include "worker/data/text/rule_tables.h"\n\nnamespace llmctl::data {\nnamespace {\n')
    print("constexpr MaskRun kMaskRuns[] = {")
    print(wrap(["{0x%x, 0x%x}" % run for run in mask_runs()]) + "\n};\n")
    for name, words in (("kExceptions", exceptions()), ("kUnits", units), ("kCurrencies", prefixes)):
        print(f"constexpr absl::string_view {name}[] = {{")
        print(wrap([literal(word) for word in words]) + "\n};\n")
    print("}  // namespace\n")
    for function, result, name in (("MaskRuns", "MaskRun", "kMaskRuns"),
                                   ("WordExceptions", "absl::string_view", "kExceptions"),
                                   ("Units", "absl::string_view", "kUnits"),
                                   ("CurrencyWords", "absl::string_view", "kCurrencies")):
        print(f"absl::Span<const {result}> {function}() {{ return {name}; }}")
    print("\n}  // namespace llmctl::data")


main()
