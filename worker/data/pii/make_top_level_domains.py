#!/usr/bin/env python3
"""Prints top_level_domains.cc: the top-level domains of the Internet's root zone.

usage: make_top_level_domains.py /usr/share/publicsuffix/public_suffix_list.dat > top_level_domains.cc
       (Debian's package publicsuffix, 20230209.2326-1)

The list's first part names every domain under which names are registered; the last labels of these are the top-level
domains. Internationalised ones come in letters and in the form for the name service.
"""

import sys

LINE_CHARACTERS = 116


def top_level_domains(path: str) -> list[str]:
    found = set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            if "END ICANN DOMAINS" in line:
                break
            rule = line.split("//")[0].split()
            if rule:
                found.add(rule[0].rsplit(".", 1)[-1].lower())
    found |= {name.encode("idna").decode("ascii") for name in found if not name.isascii()}
    return sorted(found, key=lambda name: name.encode())


def main() -> None:
    names = top_level_domains(sys.argv[1])
    print("// Made by make_top_level_domains.py from the Public Suffix List of 2023-02-09 in Debian's package\n"
          "// publicsuffix (https://publicsuffix.org/list/). Sorted by bytes.\n"
          '#include "worker/data/pii/top_level_domains.h"\n\nnamespace llmctl::data {\n\n'
          "const absl::string_view kTopLevelDomains[] = {")
    line = "   "
    for name in names:
        entry = f' "{name}",'
        if len(line) + len(entry) > LINE_CHARACTERS:
            print(line)
            line = "   "
        line += entry
    print(line + "\n};\nconst size_t kTopLevelDomainCount = std::size(kTopLevelDomains);\n\n"
          "}  // namespace llmctl::data")


main()
