"""A reading of C++ that is good enough for house rules: comments, literals, includes, function bodies.

Not a parser: it matches braces and looks at the text before each. It may miss a function in code that no
formatter would leave so; it should not invent one.
"""

import dataclasses
import re

INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')
RAW_STRING = re.compile(r'R"([^()\\ ]{0,16})\(')
# Statements and declarations whose brace opens no function.
NOT_A_FUNCTION = re.compile(
    r"(if|for|while|switch|do|else|try|catch|return|case|default|namespace|class|struct|enum|union|extern|co_return"
    r"|throw|public|private|protected)\b")
TEMPLATE_PREFIX = re.compile(r"template\s*<")
TEST_MACRO = re.compile(r"(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|BENCHMARK\w*|MATCHER\w*)\s*\(")


@dataclasses.dataclass(frozen=True)
class Include:
    line: int
    quote: str
    path: str


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    line: int
    last_line: int
    parameters: int

    @property
    def length(self) -> int:
        return self.last_line - self.line + 1


def includes(text: str) -> list[Include]:
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := INCLUDE.match(line):
            found.append(Include(number, match[1], match[2]))
    return found


def blank_comments_and_literals(text: str) -> str:
    """Spaces for comments and for what is between quotes; newlines stay."""
    out = []
    at = 0
    while at < len(text):
        end = _literal_or_comment_end(text, at)
        if end is None:
            out.append(text[at])
            at += 1
            continue
        keep_quotes = text[at] in "\"'R"
        out.append(_blanked(text[at:end], keep_quotes))
        at = end
    return "".join(out)


def _blanked(piece: str, keep_quotes: bool) -> str:
    blank = "".join("\n" if c == "\n" else " " for c in piece)
    return '"' + blank[1:-1] + '"' if keep_quotes and len(piece) >= 2 else blank


def _literal_or_comment_end(text: str, at: int):
    """Where the comment or literal that begins at `at` ends, or None if none begins there."""
    two = text[at:at + 2]
    if two == "//":
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if two == "/*":
        end = text.find("*/", at + 2)
        return len(text) if end < 0 else end + 2
    if two == 'R"' and not _is_word(text, at - 1):
        match = RAW_STRING.match(text, at)
        if match:
            end = text.find(")" + match[1] + '"', match.end())
            return len(text) if end < 0 else end + len(match[1]) + 2
    if text[at] == '"' or (text[at] == "'" and not _is_word(text, at - 1)):
        return _quoted_end(text, at)
    return None


def _is_word(text: str, at: int) -> bool:
    return at >= 0 and (text[at].isalnum() or text[at] == "_")


def _quoted_end(text: str, at: int) -> int:
    quote = text[at]
    end = at + 1
    while end < len(text) and text[end] not in (quote, "\n"):
        end += 2 if text[end] == "\\" else 1
    return min(end + 1, len(text))


def functions(code: str) -> list[Function]:
    """Function definitions of blanked code, outermost only: a lambda counts within its function."""
    return _BraceWalk(_without_directives(code)).run()


def _without_directives(code: str) -> str:
    lines = code.split("\n")
    continued = False
    for at, line in enumerate(lines):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        if directive:
            lines[at] = " " * len(line)
    return "\n".join(lines)


class _BraceWalk:
    """Follows braces; `head` is the text since the last statement or block ended."""

    def __init__(self, code: str):
        self.code = code
        self.head_start = 0
        self.stack = []  # one (kind, head_start) per open brace
        self.depth_of_function = None
        self.found = []

    def run(self) -> list[Function]:
        parentheses = 0
        for at, c in enumerate(self.code):
            if c in "([":
                parentheses += 1
            elif c in ")]":
                parentheses = max(0, parentheses - 1)
            elif c == "{":
                self._open(at, parentheses)
                parentheses = 0
            elif c == "}" and self.stack:
                parentheses = self._close(at)
            elif c == ";" and parentheses == 0:
                self.head_start = at + 1
        return self.found

    def _open(self, at: int, parentheses: int):
        kind = "block"
        head = self.code[self.head_start:at]
        if self.depth_of_function is not None:
            kind = "inner"
        elif parentheses or head.rstrip().endswith(("=", ",", "(")) or _is_initializer(head):
            kind = "value"
        elif _opens_function(head):
            kind = "function"
            self.depth_of_function = len(self.stack)
        self.stack.append((kind, self.head_start, parentheses))
        self.head_start = at + 1

    def _close(self, at: int) -> int:
        kind, head_start, parentheses = self.stack.pop()
        if kind == "function":
            self.depth_of_function = None
            self.found.append(self._function(head_start, at))
        self.head_start = head_start if kind == "value" else at + 1
        return parentheses

    def _function(self, head_start: int, end: int) -> Function:
        body = self.code.find("{", head_start)
        head = _without_access_labels(self.code[head_start:body]).lstrip()
        start = body - len(head)
        name, parameters = _signature(head)
        return Function(name, self.code.count("\n", 0, start) + 1, self.code.count("\n", 0, end) + 1, parameters)


def _without_access_labels(head: str) -> str:
    return re.sub(r"^\s*((public|private|protected)\s*:\s*)+", "", head)


def _is_initializer(head: str) -> bool:
    """Whether a brace after `head` initialises a member: `Foo::Foo(int a) : a_` or `std::string name`."""
    head = _without_access_labels(head).strip()
    if not re.search(r"[\w>]$", head) or re.search(r"\b(const|noexcept|override|final|mutable|try|else|do)$", head):
        return False
    if NOT_A_FUNCTION.match(head) or "->" in head:
        return False
    return "(" not in head or bool(re.search(r"\)\s*(noexcept\s*)?:", head))


def _opens_function(head: str) -> bool:
    head = _without_access_labels(head).strip()
    while match := TEMPLATE_PREFIX.match(head):
        head = head[_closing(head, match.end() - 1, "<", ">"):].strip()
    head = re.sub(r"^(\[\[[^\]]*\]\]|requires\b[^{]*?\))\s*", "", head)
    return "(" in head and not NOT_A_FUNCTION.match(head)


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    """Just past the bracket that closes the one at `at`."""
    depth = 0
    for end in range(at, len(text)):
        if text[end] == opening:
            depth += 1
        elif text[end] == closing and text[end - 1] != "-":
            depth -= 1
            if depth == 0:
                return end + 1
    return len(text)


def _signature(head: str) -> tuple[str, int]:
    """Name and number of parameters of the function that `head` declares."""
    opening = re.search(r"(operator\s*\(\s*\)|operator[^\w\s(]+|[\w:~]+)\s*\(", head)
    if not opening:
        return head.strip().split("\n")[-1][:40], 0
    name = opening[1]
    if TEST_MACRO.match(opening[0]):
        inside = head[opening.end():_closing(head, opening.end() - 1, "(", ")") - 1]
        return re.sub(r"\s*,\s*", ".", inside.strip()), 0
    inside = head[opening.end():_closing(head, opening.end() - 1, "(", ")") - 1]
    return name, _count_parameters(inside)


def _count_parameters(inside: str) -> int:
    if not inside.strip() or inside.strip() == "void":
        return 0
    depth, count = 0, 1
    for at, c in enumerate(inside):
        if c in "([{<":
            depth += 1
        elif c in ")]}" or (c == ">" and inside[at - 1] != "-"):
            depth -= 1
        elif c == "," and depth == 0:
            count += 1
    return count
