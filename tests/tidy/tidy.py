#!/usr/bin/env python3
"""House rules as a test: prints every violation as file:line: rule: what to do; exits 1 if there is one.

    tests/tidy/tidy.py [ROOT]

The rules are in rules_*.py, one function each; tidy_test.py plants a violation of each.
"""

import pathlib
import sys

import rules_build
import rules_code
import rules_include
import rules_text
from source_tree import Finding, Tree

RULES = rules_text.RULES + rules_code.RULES + rules_include.RULES + rules_build.RULES


def check(root: pathlib.Path) -> list[Finding]:
    tree = Tree(root)
    return sorted({finding for rule in RULES for finding in rule(tree)})


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    findings = check(root.resolve())
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} violations in {root}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
