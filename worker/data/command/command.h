// A verb of llm-data: its flags, and what it does. One file a verb; main.cc only lists them.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace llmctl::data {

// The exit codes of llmctl, which runs this program as `llmctl data`.
enum ExitCode { kOk = 0, kUsage = 2, kNotFound = 3, kConflict = 6, kOther = 7 };

// Says what is wrong on stderr; the code to exit with.
int Report(const absl::Status& status);

struct Verb {
  CLI::App* command = nullptr;
  std::function<int()> run;  // once the flags are parsed
};

Verb AddDiff(CLI::App& app);
Verb AddExplain(CLI::App& app);
Verb AddInspect(CLI::App& app);
Verb AddLm(CLI::App& app);
Verb AddPrepare(CLI::App& app);
Verb AddRethreshold(CLI::App& app);
Verb AddSample(CLI::App& app);
Verb AddTokenizer(CLI::App& app);
Verb AddVerify(CLI::App& app);
Verb AddWork(CLI::App& app);

}  // namespace llmctl::data
