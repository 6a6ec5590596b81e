"""Rules on what code may say: lengths, banned calls (each with its replacement), preprocessor conditions."""

import ast
import dataclasses
import re
from typing import Iterator

from source_tree import Finding, SourceFile, Tree

FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 5

# What must give the same result for the same arguments, whenever and wherever it runs.
PURE = ("coordinator/core", "coordinator/classify", "coordinator/placement", "coordinator/model", "worker/agent/core",
        "common/layout", "worker/data/shards/sampler.h", "worker/data/shards/sampler.cc")
# Folders whose errors are absl::Status.
NO_EXCEPTIONS = ("coordinator", "worker/agent", "worker/shim", "worker/contract", "worker/data", "client", "common",
                 "simulator")
ENGINE = ("worker/engine", "worker/trainer", "worker/cuda")
# Who reads the environment, besides main.cc: everybody else is told by constructor.
READS_ENVIRONMENT = ("worker/shim", "tests", "bench")
CONDITIONS_ALLOWED = ("worker/shim", "common/base", "tests")


@dataclasses.dataclass(frozen=True)
class Ban:
    """A call that must not appear in `folders` (all, if empty) but may in `except_in`."""
    what: str
    pattern: re.Pattern
    instead: str
    folders: tuple[str, ...] = ()
    except_in: tuple[str, ...] = ()
    except_name: str = ""
    language: str = "c++"

    def applies(self, file: SourceFile) -> bool:
        if not (file.is_cpp if self.language == "c++" else file.is_python):
            return False
        if self.folders and not file.under(*self.folders):
            return False
        return not file.under(*self.except_in) and file.name != self.except_name


def _ban(what: str, pattern: str, instead: str, **where) -> Ban:
    return Ban(what, re.compile(pattern), instead, **where)


BANS = (
    _ban("sleep", r"\bsleep_for\b|\bsleep_until\b|\busleep\s*\(|\bnanosleep\s*\(|\bSleepFor\b|(?<![\w.])sleep\s*\(",
         "a test waits on a condition with a deadline, or advances a simulated clock", folders=("tests",)),
    _ban("sleep", r"\btime\.sleep\b|\bfrom time import .*sleep", "wait on a condition with a deadline",
         folders=("tests",), language="python"),
    _ban("clock", r"\b(system|steady|high_resolution)_clock\b|\babsl::Now\b|\bGetCurrentTimeNanos\b"
         r"|(?<![\w:.>])Now\s*\(\s*\)|(?<![\w:.>])time\s*\(\s*(nullptr|NULL|0|&)|\bclock_gettime\b",
         "take `now` as an argument (common/base/instant.h)", folders=PURE),
    _ban("randomness", r"\brandom_device\b|(?<![\w:.>])s?rand\s*\(|\bstd::rand\b|\bmt19937\b",
         "a keyed or seeded generator that the caller owns (common/base/rng.h)"),
    _ban("threads", r"\bstd::(thread|mutex|jthread|condition_variable)\b|\bMutexLock\b",
         "this folder is single-threaded", folders=PURE),
    _ban("environment", r"\b(secure_)?getenv\b", "main.cc reads it and passes it on by constructor",
         except_in=READS_ENVIRONMENT, except_name="main.cc"),
    _ban("exception", r"\bthrow\b", "return absl::Status", folders=NO_EXCEPTIONS),
    _ban("assert", r"(?<!static_)(?<!\w)assert\s*\(", "CHECK (common/base/check.h): it stays on in release"),
    _ban("using-namespace", r"\busing\s+namespace\s+std\b", "name what is used"),
    _ban("autograd", r"\btorch::nn\b|[.>]backward\s*\(|\bautograd\b|\btorch::autograd\b",
         "write the backward pass by hand in the layer (worker/engine/layers)", folders=ENGINE),
    _ban("exit", r"(?<![\w:.>])(std::)?(exit|_exit|quick_exit|abort)\s*\(", "return a status up to main.cc",
         folders=("coordinator", "client", "worker/data", "worker/engine", "common/spec", "common/layout"),
         except_name="main.cc"),
)


def function_length(tree: Tree) -> Iterator[Finding]:
    for file in tree.cpp_files:
        for function in file.functions:
            if function.length > FUNCTION_LINES_MAX:
                message = f"{function.name} has {function.length} lines, at most {FUNCTION_LINES_MAX}: split it"
                yield file.finding(function.line, "function-length", message)
    for file in tree:
        if file.is_python:
            yield from _python_function_length(file)


def _python_function_length(file: SourceFile) -> Iterator[Finding]:
    try:
        parsed = ast.parse(file.text)
    except SyntaxError as error:
        yield file.finding(error.lineno or 1, "python", f"does not parse: {error.msg}")
        return
    for node in ast.walk(parsed):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                message = f"{node.name} has {length} lines, at most {FUNCTION_LINES_MAX}: split it"
                yield file.finding(node.lineno, "function-length", message)


def parameters(tree: Tree) -> Iterator[Finding]:
    for file in tree.cpp_files:
        for function in file.functions:
            if function.parameters > PARAMETERS_MAX:
                message = (f"{function.name} takes {function.parameters}, at most {PARAMETERS_MAX}: "
                           "use an options struct")
                yield file.finding(function.line, "parameters", message)


def banned_calls(tree: Tree) -> Iterator[Finding]:
    for file in tree:
        if file.under("tests/tidy"):
            continue
        for ban in BANS:
            if not ban.applies(file):
                continue
            lines = file.code_lines if ban.language == "c++" else file.lines
            for number, line in enumerate(lines, 1):
                if match := ban.pattern.search(line):
                    yield file.finding(number, ban.what, f"'{match[0].strip()}' is banned here: {ban.instead}")


def preprocessor_conditions(tree: Tree) -> Iterator[Finding]:
    for file in tree.cpp_files:
        if file.under(*CONDITIONS_ALLOWED):
            continue
        for number, line in enumerate(file.code_lines, 1):
            if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b", line):
                message = "an optional part is a file of its own that CMake chooses (no_<part>.cc)"
                yield file.finding(number, "condition", message)


def failpoints(tree: Tree) -> Iterator[Finding]:
    """A failpoint (common/base/failpoint.h) is there for a test, and has one place."""
    tests = "\n".join(file.text for file in tree if file.under("tests/integration"))
    places = {}
    for file in tree.cpp_files:
        if file.under("tests"):
            continue
        for number, line in enumerate(file.lines, 1):
            for name in re.findall(r'\bHitFailpoint\("([^"]*)"\)', line.partition("//")[0]):
                if name not in tests:
                    yield file.finding(number, "failpoint", f"no test in tests/integration names {name}: remove it")
                places.setdefault(name, set()).add(file.path)
                if len(places[name]) > 1:
                    message = f"{name} is in {', '.join(sorted(places[name]))}: rename one"
                    yield file.finding(number, "failpoint", message)


RULES = (function_length, parameters, banned_calls, preprocessor_conditions, failpoints)
