// llm-data: text in, token shards out. Flags and printing; the work is in prepare/.

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "worker/data/command/command.h"
#include "worker/data/command/print_dataset.h"
#include "worker/data/prepare/dataset_output.h"
#include "worker/data/prepare/prepare.h"
#include "worker/data/progress_line.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {
namespace {

void PrintCount(absl::string_view name, int64_t count) {
  if (count > 0) absl::PrintF("  %-24s %12d\n", name, count);
}

void PrintSummary(const PrepareOptions& options, const PrepareSummary& summary, absl::Duration elapsed) {
  double seconds = absl::ToDoubleSeconds(elapsed);
  absl::PrintF("dataset %s\n", options.output);
  PrintSplits(summary.manifest);
  absl::PrintF("  digest       %s\n", summary.digest);
  absl::PrintF("read %d files, %.1f MB, %d records in %.1f s (%.1f MB/s)\n", summary.files, summary.bytes_read / 1e6,
               summary.records, seconds, seconds > 0 ? summary.bytes_read / 1e6 / seconds : 0);
  if (!summary.dropped.empty()) absl::PrintF("dropped (where: %s/%s)\n", options.output, kRejectsName);
  for (const auto& [reason, count] : summary.dropped) PrintCount(reason, count);
  PrintCount("blank lines", summary.blank_lines);
  const Repairs& repairs = summary.repairs;
  absl::PrintF("repaired\n");
  PrintCount("invalid UTF-8 replaced", repairs.invalid_utf8);
  PrintCount("lone surrogates replaced", repairs.lone_surrogates);
  PrintCount("byte order marks", repairs.byte_order_marks);
  PrintCount("control characters", repairs.control_characters);
  PrintCount("carriage returns", repairs.carriage_returns);
  PrintCount("documents made NFC", repairs.normalized_documents);
  if (!summary.passed_over.empty()) {
    absl::PrintF("passed over %d files that are neither .txt nor .jsonl, %s the first\n", summary.passed_over.size(),
                 summary.passed_over.front());
  }
  if (summary.manifest.splits[1].documents == 0 && options.validation_fraction > 0) {
    absl::PrintF("note: no document fell into the validation part; raise --validation-fraction\n");
  }
}

int RunPrepare(const PrepareOptions& options) {
  ProgressLine line(::isatty(STDERR_FILENO) == 1);
  absl::StatusOr<PrepareSummary> summary =
      Prepare(options, [&](const PrepareProgress& progress) { line.Show(progress); });
  line.Finish();
  if (!summary.ok()) return Report(summary.status());
  PrintSummary(options, *summary, line.Elapsed());
  return kOk;
}

std::string ReadStdin() {
  return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

int RunEncode(const std::string& name) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(name);
  if (!tokenizer.ok()) return Report(tokenizer.status());
  std::vector<int32_t> tokens;
  (*tokenizer)->Encode(ReadStdin(), tokens);
  for (size_t i = 0; i < tokens.size(); ++i) std::cout << (i > 0 ? " " : "") << tokens[i];
  std::cout << "\n";
  return kOk;
}

int RunDecode(const std::string& name) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = MakeTokenizer(name);
  if (!tokenizer.ok()) return Report(tokenizer.status());
  std::string input = ReadStdin();
  std::vector<int32_t> tokens;
  for (absl::string_view word : absl::StrSplit(input, absl::ByAnyChar(" \t\r\n,"), absl::SkipEmpty())) {
    int32_t token = 0;
    if (!absl::SimpleAtoi(word, &token) || token < 0 || token >= (*tokenizer)->vocabulary_size()) {
      return Report(absl::InvalidArgumentError(
          absl::StrCat("decode: \"", word, "\" is no token id from 0 to ", (*tokenizer)->vocabulary_size() - 1)));
    }
    tokens.push_back(token);
  }
  std::cout << (*tokenizer)->Decode(tokens);
  return kOk;
}

void AddPrepare(CLI::App& app, PrepareOptions& options) {
  CLI::App* prepare = app.add_subcommand("prepare", "turn text files into a dataset for training");
  prepare->add_option("--input", options.inputs, "files, folders or globs of .txt (a file a document) and .jsonl")
      ->required();
  prepare->add_option("--output", options.output, "folder for the dataset")->required();
  prepare->add_option("--text-field", options.text_field, "field of a .jsonl object with the text")
      ->capture_default_str();
  prepare->add_option("--tokenizer", options.tokenizer, "byte, or the path of a tokenizer.json (byte-level BPE)")
      ->capture_default_str();
  prepare->add_option("--validation-fraction", options.validation_fraction, "share of documents kept for validation")
      ->capture_default_str();
  prepare->add_option("--invalid-utf8", options.invalid_utf8, "what to do with text that is not UTF-8: replace, reject")
      ->transform(CLI::CheckedTransformer(std::map<std::string, InvalidUtf8Policy>{
          {"replace", InvalidUtf8Policy::kReplace}, {"reject", InvalidUtf8Policy::kReject}}));
  prepare->add_option("--threads", options.threads, "threads that parse and normalise (default: one a core)");
  prepare->add_flag("--force", options.force, "replace a dataset that is in the output folder");
}

int Main(int argc, char** argv) {
  CLI::App app("llm-data: text in, token shards out");
  app.require_subcommand(1);
  PrepareOptions options;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  AddPrepare(app, options);
  std::string tokenizer = "byte";
  const std::vector<Verb> verbs = {AddInspect(app), AddSample(app), AddDiff(app), AddVerify(app)};
  CLI::App* encode = app.add_subcommand("encode", "text on stdin to token ids on stdout");
  CLI::App* decode = app.add_subcommand("decode", "token ids on stdin to text on stdout");
  for (CLI::App* command : {encode, decode}) command->add_option("--tokenizer", tokenizer)->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports through exceptions only; --help is one of them.
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (app.got_subcommand("prepare")) return RunPrepare(options);
  for (const Verb& verb : verbs) {
    if (app.got_subcommand(verb.command)) return verb.run();
  }
  return app.got_subcommand(encode) ? RunEncode(tokenizer) : RunDecode(tokenizer);
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) { return llmctl::data::Main(argc, argv); }
