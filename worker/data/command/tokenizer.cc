#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/command/command.h"
#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/pipeline/ordered_pipeline.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/file_system.h"
#include "worker/data/read/input_files.h"
#include "worker/data/read/record_reader.h"
#include "worker/data/tokenizer/bpe_trainer.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/data/tokenizer/word_counts.h"

namespace llmctl::data {
namespace {

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

struct TrainFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::string text_field = "text";
  std::string pattern = "gpt2";
  TrainOptions options;
  int threads = 0;
};

// Counts the words of all documents, each thread for itself.
absl::StatusOr<WordCounts> CountWords(const TrainFlags& flags, Pattern pattern, bool nfc) {
  LLM_ASSIGN_OR_RETURN(InputList list, ListInputs(flags.inputs, ""));
  ReadSettings settings{.text_field = flags.text_field};
  LLM_RETURN_IF_ERROR(settings.Validate());
  int threads = flags.threads > 0 ? flags.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  struct Scratch {
    Scratch(const ReadSettings& settings, Pattern pattern, bool nfc) : parser(settings), words(pattern, nfc) {}
    ChunkParser parser;
    ParsedChunk parsed;
    std::string normalized;
    WordCounts words;
  };
  std::vector<std::unique_ptr<Scratch>> scratch;
  for (int i = 0; i < threads; ++i) scratch.push_back(std::make_unique<Scratch>(settings, pattern, nfc));
  const TextNormalizer normalizer{NormalizeSettings()};
  size_t file = 0;
  std::unique_ptr<FileSystem> files;
  std::unique_ptr<RecordReader> reader;
  auto make = [&]() -> absl::StatusOr<std::unique_ptr<Chunk>> {
    for (; file < list.files.size(); ++file, reader.reset()) {
      if (reader == nullptr) {
        LLM_ASSIGN_OR_RETURN(files, FileSystemOf(list.files[file].path));
        LLM_ASSIGN_OR_RETURN(reader, RecordReader::Open(*files, list.files[file], {}, settings));
      }
      LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader->Next());
      if (chunk != nullptr) return chunk;
    }
    return nullptr;
  };
  auto work = [&](int worker, Chunk& chunk) {
    Scratch& own = *scratch[worker];
    own.parser.Parse(chunk, own.parsed);
    for (const ParsedDocument& document : own.parsed.documents) {
      own.words.AddText(normalizer.Normalize(document.text, own.normalized, own.parsed.repairs));
    }
    return own.parsed.documents.size();
  };
  size_t documents = 0;
  OrderedPipeline<Chunk, size_t> pipeline(threads, threads + 2);
  LLM_RETURN_IF_ERROR(pipeline.Run(make, work, [&](size_t count) {
    documents += count;
    return absl::OkStatus();
  }));
  if (documents == 0) return absl::InvalidArgumentError("no document in the input");
  for (int i = 1; i < threads; ++i) scratch[0]->words.Add(scratch[i]->words);
  return std::move(scratch[0]->words);
}

absl::Status Train(const TrainFlags& flags) {
  Pattern pattern = *PatternNamed(flags.pattern);
  LLM_ASSIGN_OR_RETURN(WordCounts words, CountWords(flags, pattern, /*nfc=*/pattern == Pattern::kQwen));
  LLM_ASSIGN_OR_RETURN(TokenizerDefinition definition, TrainBpe(words, flags.options));
  LLM_RETURN_IF_ERROR(WriteFileAtomically(flags.output, TokenizerJsonText(definition)));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(flags.output));
  absl::PrintF("%s: vocabulary %d, of %d different words\n", flags.output, tokenizer->vocabulary_size(),
               words.distinct());
  return absl::OkStatus();
}

Verb AddTrain(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app.add_subcommand("train", "train a byte-level BPE tokenizer");
  verb->add_option("--input", flags->inputs, "files, folders or globs, as prepare reads them")->required();
  verb->add_option("--output", flags->output, "the tokenizer.json to write")->required();
  verb->add_option("--text-field", flags->text_field, "field of a record with the text")->capture_default_str();
  verb->add_option("--vocabulary", flags->options.vocabulary_size, "tokens, specials and the 256 bytes included")
      ->check(CLI::Range(257, 1 << 24))
      ->capture_default_str();
  verb->add_option("--frequency-min", flags->options.frequency_min, "no pair that is rarer becomes a token");
  verb->add_option("--special", flags->options.specials, "special tokens; the first ids")->capture_default_str();
  verb->add_option("--pattern", flags->pattern, "how text is cut into words: gpt2, llama3, qwen")
      ->check(CLI::IsMember({"gpt2", "llama3", "qwen"}))
      ->capture_default_str();
  verb->add_option("--threads", flags->threads, "threads that count (default: one a core)");
  return {verb, [flags] { return Report(Train(*flags)); }};
}

}  // namespace

Verb AddTokenizer(CLI::App& app) {
  CLI::App* group = app.add_subcommand("tokenizer", "train a tokenizer, or try one");
  group->require_subcommand(1);
  Verb train = AddTrain(*group);
  auto name = std::make_shared<std::string>("byte");
  CLI::App* encode = group->add_subcommand("encode", "text on stdin to token ids on stdout");
  CLI::App* decode = group->add_subcommand("decode", "token ids on stdin to text on stdout");
  for (CLI::App* verb : {encode, decode}) {
    verb->add_option("--tokenizer", *name, "byte, or the path of a tokenizer.json")->capture_default_str();
  }
  return {group, [=] {
            if (group->got_subcommand(train.command)) return train.run();
            return group->got_subcommand(encode) ? RunEncode(*name) : RunDecode(*name);
          }};
}

}  // namespace llmctl::data
