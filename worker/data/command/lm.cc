// llm-data lm: trains n-gram language models on text, and says what they take a text for.
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/status.h"
#include "worker/data/command/command.h"
#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/perplexity/model_text.h"
#include "worker/data/perplexity/ngram_model.h"
#include "worker/data/perplexity/ngram_trainer.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/file_system.h"
#include "worker/data/read/input_files.h"
#include "worker/data/read/record_reader.h"
#include "worker/data/spill/spill_files.h"
#include "worker/data/tokenizer/bpe_tokenizer.h"

namespace llmctl::data {
namespace {

struct LmFlags {
  std::vector<std::string> inputs;
  std::string text_field = "text";
  std::string tokenizer;  // for pieces
  bool plain = false;     // no normalisation as CCNet's
  std::string output;
  std::string model;
  std::string memory = "1G";
  NgramTrainSettings train;
};

// What models are trained on and asked about: the words or pieces of documents.
class LmText {
 public:
  static absl::StatusOr<std::unique_ptr<LmText>> Create(const LmFlags& flags) {
    auto out = std::make_unique<LmText>();
    ModelTextSettings settings{.normalize = !flags.plain};
    if (!flags.tokenizer.empty()) {
      settings.unit = ModelUnit::kPieces;
      LLM_ASSIGN_OR_RETURN(out->tokenizer_,
                           ReadBpeTokenizer(flags.tokenizer, {.added_tokens = AddedTokensInText::kPlain}));
    }
    out->text_ = std::make_unique<ModelText>(settings, out->tokenizer_.get());
    return out;
  }
  const ModelText& text() const { return *text_; }

 private:
  std::unique_ptr<BpeTokenizer> tokenizer_;
  std::unique_ptr<ModelText> text_;
};

// Every document of the input, in order, with its id or place.
template <typename Take>
absl::Status ForEachDocument(const LmFlags& flags, Take take) {
  LLM_ASSIGN_OR_RETURN(InputList list, ListInputs(flags.inputs, ""));
  ReadSettings settings{.text_field = flags.text_field};
  LLM_RETURN_IF_ERROR(settings.Validate());
  ChunkParser parser(settings);
  ParsedChunk parsed;
  const TextNormalizer normalizer{NormalizeSettings()};
  std::string scratch;
  for (const InputFile& file : list.files) {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> files, FileSystemOf(file.path));
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> reader, RecordReader::Open(*files, file, {}, settings));
    while (true) {
      LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader->Next());
      if (chunk == nullptr) break;
      parser.Parse(*chunk, parsed);
      for (const ParsedDocument& document : parsed.documents) {
        std::string name = document.id.empty() ? absl::StrCat(file.path, ":", document.place.line)
                                               : std::string(document.id);
        LLM_RETURN_IF_ERROR(take(name, normalizer.Normalize(document.text, scratch, parsed.repairs)));
      }
    }
  }
  return absl::OkStatus();
}

void PrintTrained(const LmFlags& flags, const NgramTrainReport& report) {
  absl::PrintF("%s: order %d, of %d lines with %d words, %d of them different\n", flags.output, flags.train.order,
               report.lines, report.words, report.vocabulary);
  for (size_t i = 0; i < report.orders.size(); ++i) {
    const NgramOrderReport& order = report.orders[i];
    absl::PrintF("  %d-grams %12d, kept %12d, discounts %.4f %.4f %.4f%s\n", i + 1, order.distinct, order.kept,
                 order.discounts[0], order.discounts[1], order.discounts[2], order.fallback ? " (fall-back)" : "");
  }
  for (const std::string& warning : report.warnings) std::cerr << "llm-data: " << warning << "\n";
}

absl::Status Train(LmFlags flags) {
  LLM_ASSIGN_OR_RETURN(int64_t memory, ParseByteSize(flags.memory));
  flags.train.memory_bytes = static_cast<uint64_t>(memory);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<LmText> text, LmText::Create(flags));
  LocalSpillFiles files(LocalSpillFiles::Durability::kRename);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<NgramTrainer> trainer,
                       NgramTrainer::Create(flags.train, files, absl::StrCat(flags.output, ".work")));
  ModelTextReader reader(text->text());
  int64_t documents = 0;
  LLM_RETURN_IF_ERROR(ForEachDocument(flags, [&](const std::string&, absl::string_view document) {
    ++documents;
    return trainer->AddDocument(reader, document);
  }));
  bool terminal = ::isatty(STDERR_FILENO) == 1;
  LLM_ASSIGN_OR_RETURN(NgramTrainReport report,
                       trainer->WriteArpa(flags.output, [&](const NgramTrainProgress& progress) {
                         if (!terminal) return;
                         absl::FPrintF(stderr, "\r%s, order %d, %d n-grams\x1b[K", progress.step, progress.order,
                                       progress.done);
                       }));
  if (terminal) absl::FPrintF(stderr, "\r\x1b[K");
  PrintTrained(flags, report);
  return absl::OkStatus();
}

// A line for each document: its perplexity, how many words, how many of them unknown, its name.
absl::Status ScoreAll(const LmFlags& flags) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<LmText> text, LmText::Create(flags));
  LLM_ASSIGN_OR_RETURN(NgramModel model, NgramModel::LoadFile(flags.model));
  ModelTextReader reader(text->text());
  NgramScorer scorer(model);
  std::vector<absl::string_view> words;
  return ForEachDocument(flags, [&](const std::string& name, absl::string_view document) {
    scorer.Clear();
    reader.Start(document);
    while (reader.NextLine(words)) {
      scorer.BeginLine();
      for (absl::string_view word : words) scorer.AddWord(word);
      scorer.EndLine();
    }
    TextScore score = scorer.Score();
    absl::PrintF("%.1f\t%d\t%d\t%s\n", score.Perplexity(), score.length, score.unknown, name);
    return absl::OkStatus();
  });
}

void AddTextFlags(CLI::App& verb, LmFlags& flags) {
  verb.add_option("--input", flags.inputs, "files, folders or globs, as prepare reads them")->required();
  verb.add_option("--text-field", flags.text_field, "field of a record with the text")->capture_default_str();
  verb.add_option("--tokenizer", flags.tokenizer,
                  "words are the pieces of this tokenizer.json, not what stands between white space");
  verb.add_flag("--plain", flags.plain, "without CCNet's normalisation (perplexity.normalize: false)");
}

}  // namespace

Verb AddLm(CLI::App& app) {
  CLI::App* group = app.add_subcommand("lm", "n-gram language models, for perplexity: train one, or score text");
  group->require_subcommand(1);
  auto flags = std::make_shared<LmFlags>();
  CLI::App* train = group->add_subcommand("train", "train a model (modified Kneser-Ney) and write it as ARPA");
  AddTextFlags(*train, *flags);
  train->add_option("--output", flags->output, "the .arpa or .arpa.gz to write")->required();
  train->add_option("--order", flags->train.order, "words of the longest n-grams")
      ->check(CLI::Range(1, 6))
      ->capture_default_str();
  train->add_option("--prune", flags->train.prune, "per order: n-grams that are as rare are left out")
      ->delimiter(',')
      ->capture_default_str();
  train->add_option("--memory", flags->memory, "for sorting")->capture_default_str();
  CLI::App* score = group->add_subcommand("score", "perplexity, words, unknown words and name of every document");
  AddTextFlags(*score, *flags);
  score->add_option("--model", flags->model, "ARPA file")->required();
  return {group, [=] {
            return Report(group->got_subcommand(train) ? Train(*flags) : ScoreAll(*flags));
          }};
}

}  // namespace llmctl::data
