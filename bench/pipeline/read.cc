// How fast are files read and parsed: from what lies on disk (in the page cache) to the texts of its documents, on one
// thread, with normalisation or without?
//
// User CPU seconds of this thread count, the least of several repetitions. The last line is JSON with a row per file:
// MB of text per second.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"

#include "bench/pipeline/corpus_texts.h"
#include "common/base/status.h"
#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::data {
namespace {

using Json = nlohmann::json;

struct Options {
  std::vector<std::string> files;
  bool normalize = false;
  bool no_parse = false;
  int repetitions = 3;
};

struct Measured {
  double seconds = 0;
  int64_t documents = 0;
  int64_t text_bytes = 0;
  int64_t rejects = 0;
};

absl::StatusOr<Measured> ReadOnce(const InputFile& file, const Options& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem> files, FileSystemOf(file.path));
  ReadSettings settings;
  ChunkParser parser(settings);
  ParsedChunk parsed;
  TextNormalizer normalizer({});
  std::string scratch;
  Measured out;
  double start = CpuSeconds();
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> reader, RecordReader::Open(*files, file, {}, settings));
  while (true) {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader->Next());
    if (chunk == nullptr) break;
    if (options.no_parse) {
      out.text_bytes += chunk->bytes.size();
      continue;
    }
    parser.Parse(*chunk, parsed);
    out.documents += parsed.documents.size();
    out.rejects += parsed.rejects.size();
    for (const ParsedDocument& document : parsed.documents) {
      absl::string_view text = document.text;
      if (options.normalize) text = normalizer.Normalize(text, scratch, parsed.repairs);
      out.text_bytes += text.size();
    }
  }
  out.seconds = CpuSeconds() - start;
  return out;
}

absl::StatusOr<Json> Measure(const InputFile& file, const Options& options) {
  Measured best;
  for (int i = 0; i < options.repetitions; ++i) {
    LLM_ASSIGN_OR_RETURN(Measured measured, ReadOnce(file, options));
    if (i == 0 || measured.seconds < best.seconds) best = measured;
  }
  return Json{{"file", file.path},          {"file_MB", file.bytes / 1e6}, {"MB", best.text_bytes / 1e6},
              {"documents", best.documents}, {"rejects", best.rejects},     {"cpu_s", best.seconds},
              {"MB_per_s", best.seconds > 0 ? best.text_bytes / 1e6 / best.seconds : 0}};
}

int Run(const Options& options) {
  absl::StatusOr<InputList> list = ListInputs(options.files, "");
  absl::Status status = list.status();
  Json rows = Json::array();
  for (size_t i = 0; status.ok() && i < list->files.size(); ++i) {
    absl::StatusOr<Json> row = Measure(list->files[i], options);
    status = row.status();
    if (row.ok()) rows.push_back(*row);
  }
  if (!status.ok()) {
    std::cerr << "llm-bench-read: " << status.message() << "\n";
    return 1;
  }
  std::cout << Json({{"bench", "read"}, {"files", rows}}).dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) {
  llmctl::data::Options options;
  CLI::App app("Speed of reading and parsing, in MB of text per CPU second of one thread");
  app.add_option("files", options.files, "files of any format that can be read")->required();
  app.add_flag("--normalize", options.normalize, "normalise the texts too");
  app.add_flag("--no-parse", options.no_parse, "only read and decompress; MB are then those of the file's content");
  app.add_option("--repetitions", options.repetitions, "the fastest counts");
  CLI11_PARSE(app, argc, argv);
  return llmctl::data::Run(options);
}
