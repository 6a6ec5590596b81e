#include "worker/data/dedup/near_settings.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace llmctl::data {
namespace {

// A signature stays within a few cache lines of its kin, and a record of sketches within a page.
constexpr int kHashesMax = 16384;
constexpr int kShingleWordsMax = 64;

const char* RecipeName(ShingleRecipe recipe) { return recipe == ShingleRecipe::kFast ? "fast" : "datatrove"; }

}  // namespace

absl::Status Validate(const NearSettings& settings) {
  std::vector<std::string> faults;
  if (settings.bands < 1) faults.push_back(absl::StrCat("bands: at least 1, found ", settings.bands));
  if (settings.rows < 1) faults.push_back(absl::StrCat("rows: at least 1, found ", settings.rows));
  if (int64_t{settings.bands} * settings.rows > kHashesMax) {
    faults.push_back(absl::StrCat("bands x rows: at most ", kHashesMax, ", found ", settings.bands, " x ",
                                  settings.rows));
  }
  if (settings.shingle_words < 1 || settings.shingle_words > kShingleWordsMax) {
    faults.push_back(absl::StrCat("shingle words: 1 to ", kShingleWordsMax, ", found ", settings.shingle_words));
  }
  if (settings.jaccard_min && !(*settings.jaccard_min > 0 && *settings.jaccard_min <= 1)) {
    faults.push_back(absl::StrCat("least Jaccard: above 0 and at most 1, found ", *settings.jaccard_min));
  }
  if (settings.recipe == ShingleRecipe::kDatatrove && settings.seed > 0xffffffff) {
    faults.push_back(absl::StrCat("seed: datatrove's has 32 bits, found ", settings.seed));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("near deduplication: ", absl::StrJoin(faults, "; ")));
}

double Threshold(const NearSettings& settings) { return std::pow(1.0 / settings.bands, 1.0 / settings.rows); }

double DetectionProbability(const NearSettings& settings, double jaccard) {
  return 1 - std::pow(1 - std::pow(jaccard, settings.rows), settings.bands);
}

std::string Describe(const NearSettings& settings) {
  std::string check;
  if (settings.jaccard_min) check = absl::StrFormat(", candidates below Jaccard %.2f dropped", *settings.jaccard_min);
  return absl::StrFormat(
      "near duplicates (%s): %d bands x %d rows of %d-word shingles, threshold %.2f, P(0.8) = %.3f%s",
      RecipeName(settings.recipe), settings.bands, settings.rows, settings.shingle_words, Threshold(settings),
      DetectionProbability(settings, 0.8), check);
}

std::string SignatureText(const NearSettings& settings) {
  return absl::StrFormat("recipe %s 1, bands %d, rows %d, words %d, seed %d, shingles %s", RecipeName(settings.recipe),
                         settings.bands, settings.rows, settings.shingle_words, settings.seed,
                         settings.jaccard_min ? "kept" : "not kept");
}

std::string ClusterText(const NearSettings& settings) {
  return absl::StrCat(SignatureText(settings), ", least Jaccard ",
                      settings.jaccard_min ? absl::StrFormat("%.17g", *settings.jaccard_min) : "none");
}

}  // namespace llmctl::data
