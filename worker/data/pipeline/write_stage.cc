#include "worker/data/pipeline/write_stage.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/data/mix/mix.h"
#include "worker/data/pack/packed_writer.h"
#include "worker/data/perplexity/length_balance.h"
#include "worker/data/pipeline/audit.h"
#include "worker/data/pipeline/encode_stage.h"
#include "worker/data/pipeline/report.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/dataset_tokenizer.h"
#include "worker/data/shards/unigram_entropy.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

// The specification without what depends on a machine: paths, threads, memory. The same content gives the same digest
// anywhere.
json PortableSpec(const contract::CorpusConfig& config, const std::string& tokenizer_digest) {
  contract::CorpusConfig portable = config;
  portable.output.clear();
  portable.memory.clear();
  portable.threads = portable.workers = 0;
  for (contract::CorpusSourceConfig& source : portable.sources) source.paths.clear();
  if (portable.language) portable.language->model.clear();
  if (portable.perplexity) {
    portable.perplexity->tokenizer.clear();
    for (contract::PerplexityModelConfig& model : portable.perplexity->models) model.arpa.clear();
  }
  if (portable.pii) portable.pii->key_file.clear();
  portable.tokenizer = tokenizer_digest;
  return json::parse(contract::EncodeCorpusConfig(portable));
}

class WriteWorker : public StageWorker {
 public:
  WriteWorker(const Workspace& workspace, const std::vector<Segment>& segments, const Tokenizer& tokenizer,
              const std::string& output, StageProgress& progress)
      : workspace_(workspace), segments_(segments), tokenizer_(tokenizer), output_(output), progress_(progress) {}

  absl::Status Run(int) override {
    const contract::CorpusConfig& config = workspace_.plan().config;
    LLM_ASSIGN_OR_RETURN(CorpusReport report, MakeReport(workspace_, segments_));
    LLM_RETURN_IF_ERROR(WriteRejects(workspace_, absl::StrCat(output_, "/", kRejectsName)));
    LLM_ASSIGN_OR_RETURN(DatasetManifest manifest, WriteShards(report));
    if (manifest.splits.front().documents == 0) return NothingLeft(report);
    json report_json = ReportJson(report);
    LLM_RETURN_IF_ERROR(WriteText(kReportName, JsonText(report_json, /*indented=*/true) + "\n"));
    LLM_RETURN_IF_ERROR(WriteText(kReportPageName, ReportHtml(report)));
    manifest.source_json = JsonText({{"spec", PortableSpec(config, tokenizer_.digest())},
                                     {"input", report_json["input"]},
                                     {"counters", report_json["counters"]},
                                     {"total", {{"read", report_json["total"]["read"]},
                                                {"kept", report_json["total"]["kept"]},
                                                {"dropped", report_json["total"]["dropped"]}}},
                                     {"tokens", report_json["tokens"]}},
                                    /*indented=*/false);
    return WriteManifest(workspace_.folder(), manifest);
  }

 private:
  absl::Status WriteText(const char* name, const std::string& text) {
    return WriteFileAtomically(absl::StrCat(output_, "/", name), text);
  }

  absl::Status NothingLeft(const CorpusReport& report) {
    json total = ReportJson(report)["total"];
    return absl::InvalidArgumentError(absl::StrCat(
        "no document for training is left of ", total["read"]["documents"].dump(), " in ", report.files,
        " files (dropped: ", total["dropped"].dump(), "; where: ", output_, "/", kRejectsName, ")"));
  }

  // How often documents of each length are taken; nothing where all are.
  absl::StatusOr<std::optional<LengthPlan>> BalanceLengths(const CorpusReport& report) {
    const std::optional<contract::LengthBalanceConfig>& config = workspace_.plan().config.length_balance;
    if (!config) return std::nullopt;
    length_settings_ = LengthBalanceSettingsOf(*config);
    LLM_RETURN_IF_ERROR(Annotate(length_settings_.Validate(), "lengthBalance"));
    LengthHistogram histogram(length_settings_);
    for (const auto& [group, counts] : report.groups) {
      LLM_RETURN_IF_ERROR(ForEachDocument(group, [&](uint64_t, const std::vector<int32_t>& tokens) {
        histogram.Add(length_settings_, tokens.size());
        return absl::OkStatus();
      }));
    }
    absl::StatusOr<LengthPlan> plan = PlanLengths(histogram, length_settings_);
    if (!plan.ok()) return Annotate(plan.status(), "lengthBalance");
    return std::optional<LengthPlan>(*std::move(plan));
  }

  uint32_t Copies(const std::optional<LengthPlan>& lengths, uint64_t hash, size_t tokens) const {
    if (!lengths) return 1;
    absl::string_view id(reinterpret_cast<const char*>(&hash), sizeof(hash));
    return CopiesOf(*lengths, workspace_.plan().config.length_balance->seed, LengthBucketOf(length_settings_, tokens),
                    id);
  }

  absl::StatusOr<DatasetManifest> WriteShards(const CorpusReport& report) {
    LLM_ASSIGN_OR_RETURN(std::optional<LengthPlan> lengths, BalanceLengths(report));
    const contract::CorpusConfig& config = workspace_.plan().config;
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<ShardWriter> train, CreateWriter("train"));
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<ShardWriter> validation, CreateWriter("validation"));
    std::vector<int64_t> counts(tokenizer_.vocabulary_size());
    for (const std::string& group : GroupsInOrder(report)) {
      if (config.mix) {
        LLM_RETURN_IF_ERROR(train->BeginGroup(group));
        LLM_RETURN_IF_ERROR(validation->BeginGroup(group));
      }
      LLM_RETURN_IF_ERROR(ForEachDocument(group, [&](uint64_t hash, const std::vector<int32_t>& tokens) {
        if (IsValidation(hash)) return validation->AddDocument(tokens);
        for (uint32_t copies = Copies(lengths, hash, tokens.size()); copies > 0; --copies) {
          for (int32_t token : tokens) ++counts[token];
          LLM_RETURN_IF_ERROR(train->AddDocument(tokens));
        }
        return absl::OkStatus();
      }));
    }
    DatasetManifest manifest;
    LLM_RETURN_IF_ERROR(CopyTokenizer(manifest));
    manifest.unigram_entropy = UnigramEntropy(counts);
    for (ShardWriter* writer : {train.get(), validation.get()}) {
      LLM_ASSIGN_OR_RETURN(SplitInfo split, writer->Finish());
      LLM_RETURN_IF_ERROR(Weigh(split));
      manifest.splits.push_back(std::move(split));
    }
    return manifest;
  }

  absl::StatusOr<std::unique_ptr<ShardWriter>> CreateWriter(const std::string& split) {
    const std::optional<contract::PackConfig>& pack = workspace_.plan().config.pack;
    if (!pack) return ShardWriter::Create(output_, split, tokenizer_.vocabulary_size());
    PackSettings settings = PackSettingsOf(*pack);
    LLM_RETURN_IF_ERROR(settings.Validate());
    return CreatePackedWriter(output_, split, tokenizer_.vocabulary_size(), settings);
  }

  // As the specification names the sources; the languages of a source by their labels.
  std::vector<std::string> GroupsInOrder(const CorpusReport& report) const {
    std::vector<std::string> out;
    for (const contract::CorpusSourceConfig& source : workspace_.plan().config.sources) {
      for (const auto& [name, group] : report.groups) {
        if (name == source.name || absl::StartsWith(name, source.name + "/")) out.push_back(name);
      }
    }
    return out;
  }

  // Validation is not weighted: it is looked at once.
  absl::Status Weigh(SplitInfo& split) const {
    const std::optional<contract::MixConfig>& mix = workspace_.plan().config.mix;
    if (!mix || split.name != "train") return absl::OkStatus();
    MixSettings settings = MixSettingsOf(*mix);
    LLM_RETURN_IF_ERROR(Annotate(settings.Validate(), "mix"));
    absl::StatusOr<std::vector<double>> weights = MixWeights(settings, split.groups);
    if (!weights.ok()) return Annotate(weights.status(), "mix");
    for (size_t i = 0; i < split.groups.size(); ++i) split.groups[i].weight = (*weights)[i];
    return absl::OkStatus();
  }

  // The tokenizer travels with the dataset.
  absl::Status CopyTokenizer(DatasetManifest& manifest) {
    const contract::CorpusConfig& config = workspace_.plan().config;
    manifest.vocabulary_size = tokenizer_.vocabulary_size();
    manifest.end_of_document = tokenizer_.end_of_document();
    manifest.tokenizer_digest = tokenizer_.digest();
    manifest.tokenizer = config.tokenizer;
    if (config.pack) {
      manifest.packing = PackingInfo{PackSettingsOf(*config.pack).row_tokens(), tokenizer_.end_of_document()};
    }
    if (config.tokenizer == "byte") return absl::OkStatus();
    LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(config.tokenizer));
    manifest.tokenizer = kDatasetTokenizerName;
    return WriteText(kDatasetTokenizerName, text);
  }

  template <typename Take>
  absl::Status ForEachDocument(const std::string& group, Take take) {
    std::vector<int32_t> tokens;
    for (const Segment& segment : segments_) {
      absl::StatusOr<TokenReader> reader = TokenReader::Open(workspace_, segment, group);
      if (absl::IsNotFound(reader.status())) continue;
      LLM_RETURN_IF_ERROR(reader.status());
      uint64_t hash = 0;
      while (true) {
        LLM_ASSIGN_OR_RETURN(bool more, reader->Next(hash, tokens));
        if (!more) break;
        progress_.done += static_cast<int64_t>(tokens.size());
        LLM_RETURN_IF_ERROR(take(hash, tokens));
      }
    }
    return absl::OkStatus();
  }

  bool IsValidation(uint64_t hash) const {
    return std::ldexp(static_cast<double>(hash), -64) < workspace_.plan().config.validation_fraction;
  }

  const Workspace& workspace_;
  const std::vector<Segment>& segments_;
  const Tokenizer& tokenizer_;
  const std::string& output_;
  StageProgress& progress_;
  LengthBalanceSettings length_settings_;
};

class WriteStage : public Stage {
 public:
  WriteStage(const Workspace& workspace, std::vector<Segment> segments, const Tokenizer& tokenizer, std::string output)
      : workspace_(workspace), segments_(std::move(segments)), tokenizer_(tokenizer), output_(std::move(output)) {}

  int tasks() const override { return 1; }
  int64_t amount() const override { return 0; }
  absl::string_view unit() const override { return "tokens"; }
  absl::StatusOr<std::unique_ptr<StageWorker>> MakeWorker(int, int64_t, StageProgress& progress) override {
    return std::make_unique<WriteWorker>(workspace_, segments_, tokenizer_, output_, progress);
  }

 private:
  const Workspace& workspace_;
  const std::vector<Segment> segments_;
  const Tokenizer& tokenizer_;
  const std::string output_;
};

}  // namespace

std::unique_ptr<Stage> MakeWriteStage(const Workspace& workspace, std::vector<Segment> segments,
                                      const Tokenizer& tokenizer, std::string output) {
  return std::make_unique<WriteStage>(workspace, std::move(segments), tokenizer, std::move(output));
}

}  // namespace llmctl::data
