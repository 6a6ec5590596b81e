#!/usr/bin/env python3
"""The house rules are themselves tested: a clean tree gives nothing, and each planted violation is found."""

import pathlib
import tempfile
import unittest

import cpp_scan
import tidy

CLEAN_TREE = {
    "CMakeLists.txt": "add_subdirectory(coordinator)\n",
    "common/cmake/layers.cmake": "llm_layer(common/base)\nllm_layer(proto EXTERNAL protobuf grpc)\n"
                                 "llm_layer(coordinator/core DEPS common/base)\n"
                                 "llm_layer(worker/engine DEPS common/base EXTERNAL torch)\n"
                                 "llm_layer(client DEPS common/base)\nllm_layer(worker/shim DEPS common/base)\n",
    "common/base/ids.h": "// Ids: two kinds never mix.\n#pragma once\n\n#include <string>\n",
    "coordinator/core/CMakeLists.txt": "llm_library(NAME coordinator_core SRCS step.cc DEPS common_base)\n",
    "coordinator/core/step.h": "// Step: the one door into the state machine.\n#pragma once\n",
    "coordinator/core/step.cc":
        '#include "coordinator/core/step.h"\n\n#include <string>\n\n#include "absl/status/status.h"\n\n'
        '#include "common/base/ids.h"\n\nnamespace llmctl {\n\nint Step(int state) { return state; }\n\n}\n',
    "README.md":
        "# A product\n\nSee [the core](coordinator/core/step.h) and [below](#how-it-works).\n\n## How it works\n",
}


def long_function(lines: int) -> str:
    return "int Long(int a) {\n" + "  a += 1;\n" * (lines - 2) + "}\n"


# (rule, file, what is planted, line where it must be found). Text is appended to the clean file if there is one.
PLANTED = [
    ("file-name", "client/string_util.py", "pass\n", 1),
    ("file-name", "client/common.py", "pass\n", 1),
    ("file-length", "client/big.py", "a = 1\n" * 801, 801),
    ("file-length", "tests/unit/big.py", "a = 1\n" * 1001, 1001),
    ("whitespace", "client/a.py", "if a:\n\tb()\n", 2),
    ("whitespace", "client/a.py", "a = 1 \n", 1),
    ("whitespace", "client/a.py", "a = 1", 1),
    ("line-length", "client/a.py", "a = '" + "x" * 120 + "'\n", 1),
    ("machine-path", "client/a.py", "a = 1\npath = '/home/ann/data'\n", 2),
    ("registry-host", "deploy/setup.sh", "pip install --index-url https://download.pytorch.org/whl torch\n", 1),
    ("unfinished", "client/a.py", "# TODO: later\n", 1),
    ("unfinished", "client/a.py", "# FIXME(ann): when it rains, go in\n", 1),
    ("link", "docs/a.md", "[gone](gone.md)\n", 1),
    ("link", "docs/a.md", "[gone](../README.md#no-such-heading)\n", 1),
    ("named-file", "docs/a.md", "Run `llmctl submit examples/gone.yaml`.\n", 1),
    ("function-length", "coordinator/core/step.cc", long_function(71), 14),
    ("function-length", "client/a.py", "def f():\n" + "    a = 1\n" * 70, 1),
    ("python", "client/a.py", "def f(:\n", 1),
    ("parameters", "coordinator/core/step.cc", "void F(int a, int b, int c, int d, int e, int f) {\n}\n", 14),
    ("sleep", "tests/unit/a_test.cc", "void F() { std::this_thread::sleep_for(kWait); }\n", 1),
    ("sleep", "tests/unit/a_test.cc", "void F() { absl::SleepFor(kWait); }\n", 1),
    ("sleep", "tests/integration/cluster.py", "import time\ntime.sleep(1)\n", 2),
    ("clock", "coordinator/core/step.cc", "auto t = std::chrono::system_clock::now();\n", 14),
    ("clock", "coordinator/core/step.cc", "auto t = absl::Now();\n", 14),
    ("clock", "coordinator/core/step.cc", "auto t = time(nullptr);\n", 14),
    ("failpoint", "coordinator/core/step.cc", 'void F() { HitFailpoint("core.never_tested"); }\n', 14),
    ("randomness", "client/a.cc", "std::random_device device;\n", 1),
    ("randomness", "client/a.cc", "int a = rand();\n", 1),
    ("threads", "coordinator/core/step.cc", "std::mutex mutex;\n", 14),
    ("environment", "client/a.cc", 'const char* home = getenv("HOME");\n', 1),
    ("exception", "client/a.cc", 'void F() { throw std::runtime_error("no"); }\n', 1),
    ("assert", "worker/engine/a.cc", "void F(int a) { assert(a > 0); }\n", 1),
    ("using-namespace", "client/a.cc", "using namespace std;\n", 1),
    ("using-namespace", "client/a.h", "// An idea.\n#pragma once\nusing namespace absl;\n", 3),
    ("autograd", "worker/engine/a.cc", "torch::nn::Linear linear(1, 2);\n", 1),
    ("autograd", "worker/engine/a.cc", "void F() { loss.backward(); }\n", 1),
    ("exit", "client/a.cc", "void F() { std::exit(1); }\n", 1),
    ("condition", "client/a.cc", "#ifdef __linux__\n#endif\n", 1),
    ("direction", "coordinator/core/step.cc", '#include "client/a.h"\n', 14),
    ("direction", "coordinator/core/step.cc", '#include "llmctl/v1/job.pb.h"\n', 14),
    ("direction", "coordinator/core/step.cc", '#include "llmctl/v1/jobs.grpc.pb.h"\n', 14),
    ("direction", "coordinator/core/step.cc", "#include <grpcpp/grpcpp.h>\n", 14),
    ("direction", "worker/engine/a.cc", "#include <google/protobuf/message.h>\n", 1),
    ("direction", "client/a.cc", "#include <ATen/core/Tensor.h>\n", 1),
    ("direction", "client/a.cc", "#include <boost/asio.hpp>\n", 1),
    ("direction", "client/a.cc", '#include "a.h"\n', 1),
    ("include-order", "client/a.cc", '#include "absl/status/status.h"\n\n#include <string>\n', 3),
    ("include-order", "client/a.cc", '#include <string>\n#include "absl/status/status.h"\n', 1),
    ("pragma-once", "client/a.h", "// An idea.\n#ifndef A_H\n#define A_H\n#endif\n", 2),
    ("idea", "client/a.h", "#pragma once\n", 1),
    ("dead-file", "client/a.cc", "int a;\n", 1),
    ("dead-file", "client/a.h", "// An idea.\n#pragma once\n", 1),
    ("dead-file", "tests/unit/test_a.py", "pass\n", 1),
]


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in CLEAN_TREE.items():
            self.write(path, text)

    def write(self, path: str, text: str):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_clean_tree_has_no_findings(self):
        self.assertEqual(tidy.check(self.root), [])

    def test_each_planted_violation_is_found_where_it_is(self):
        for rule, path, text, line in PLANTED:
            with self.subTest(rule=rule, text=text[:60]):
                self.write(path, CLEAN_TREE.get(path, "") + text)

                found = [(f.rule, f.path, f.line) for f in tidy.check(self.root)]

                self.assertIn((rule, path, line), found)
                if path in CLEAN_TREE:
                    self.write(path, CLEAN_TREE[path])
                else:
                    (self.root / path).unlink()

    def test_every_rule_has_a_planted_violation(self):
        source = "".join(path.read_text() for path in pathlib.Path(tidy.__file__).parent.glob("rules_*.py"))
        for rule in {ban.what for ban in tidy.rules_code.BANS}:
            self.assertIn(rule, {row[0] for row in PLANTED})
        for rule in {row[0] for row in PLANTED}:
            self.assertIn(f'"{rule}"', source)

    def test_build_folders_are_not_looked_at(self):
        self.write("build/string_util.py", "pass\n")
        self.write("build-asan/string_util.py", "pass\n")

        self.assertEqual(tidy.check(self.root), [])

    def test_words_in_comments_and_strings_are_not_calls(self):
        clean = CLEAN_TREE["coordinator/core/step.cc"]
        self.write("coordinator/core/step.cc", clean + '// throw, absl::Now() and rand() in words.\n'
                   'const char kText[] = "throw std::mutex rand() assert(1)";\n'
                   'const char kRaw[] = R"(absl::Now() "quoted" throw)";\nconst int kBig = 1\'000\'000;\n')

        self.assertEqual(tidy.check(self.root), [])


class FunctionScanTest(unittest.TestCase):
    def functions(self, code: str) -> list[tuple]:
        scanned = cpp_scan.functions(cpp_scan.blank_comments_and_literals(code))
        return [(f.name, f.length, f.parameters) for f in scanned]

    def test_class_and_namespace_braces_are_no_functions(self):
        code = ("namespace a {\nclass B final : public C {\n public:\n  int D() const override {\n    return 1;\n  }\n"
                "};\n}\n")
        self.assertEqual(self.functions(code), [("D", 3, 0)])

    def test_initializer_braces_do_not_hide_the_constructor(self):
        code = "A::A(int b, std::map<int, int> c)\n    : b_{b}, c_{std::move(c)} {\n  Run();\n}\n"
        self.assertEqual(self.functions(code), [("A::A", 4, 2)])

    def test_member_with_initializer_and_lambda_count_within_what_holds_them(self):
        code = ("struct A {\n  int b{0};\n  std::vector<int> c = {1, 2};\n};\n"
                "void F() {\n  G([&](int a) {\n    H();\n  });\n}\n")
        self.assertEqual(self.functions(code), [("F", 5, 0)])

    def test_template_trailing_return_and_operator(self):
        code = ("template <typename T>\nauto F(T a, int b) -> std::vector<T> {\n}\n"
                "bool operator==(const A& a, const A& b) {\n}\nTEST(Suite, DoesIt) {\n}\n")
        self.assertEqual(self.functions(code), [("F", 3, 2), ("operator==", 2, 2), ("Suite.DoesIt", 2, 0)])


if __name__ == "__main__":
    unittest.main()
