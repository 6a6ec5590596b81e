#include "worker/data/dedup/signer.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/dedup/datatrove_shingles.h"

namespace llmctl::data {

absl::StatusOr<std::unique_ptr<Signer>> Signer::Make(const NearSettings& settings, SplitWords split_words) {
  LLM_RETURN_IF_ERROR(Validate(settings));
  const SignatureKernels& kernels = BestSignatureKernels();
  std::unique_ptr<ShingleSource> source;
  if (settings.recipe == ShingleRecipe::kDatatrove) {
    if (!split_words) {
      return absl::InvalidArgumentError("near deduplication: the datatrove recipe needs a word splitter, found none");
    }
    source = std::make_unique<DatatroveShingles>(settings.shingle_words, std::move(split_words));
  } else {
    source = std::make_unique<FastShingles>(settings.shingle_words, kernels);
  }
  return std::unique_ptr<Signer>(new Signer(settings, std::move(source), kernels));
}

Signer::Signer(const NearSettings& settings, std::unique_ptr<ShingleSource> source, const SignatureKernels& kernels)
    : settings_(settings),
      functions_(settings),
      source_(std::move(source)),
      update_(settings.recipe == ShingleRecipe::kDatatrove ? kernels.update_mersenne : kernels.update) {}

void Signer::Sign(absl::string_view text, Signature& out) const {
  out.least.assign(functions_.padded_count(), kNoShingle);
  out.shingles = 0;
  out.set.Clear();
  const HashFunctions functions = functions_.functions();
  const bool keep = settings_.jaccard_min.has_value();
  source_->Read(text, out.scratch, [&](absl::Span<const uint64_t> shingles) {
    update_(shingles.data(), shingles.size(), functions, out.least.data());
    out.shingles += shingles.size();
    if (keep) out.set.Add(shingles);
  });
  out.full = out.shingles > 0;
}

uint64_t Signer::BandKey(const Signature& signature, int band) const {
  const uint64_t* rows = signature.least.data() + int64_t{band} * settings_.rows;
  return Fingerprint64({reinterpret_cast<const char*>(rows), settings_.rows * sizeof(uint64_t)}, band);
}

double EstimateJaccard(absl::Span<const uint64_t> a, absl::Span<const uint64_t> b) {
  CHECK(a.size() == b.size() && !a.empty()) << "signatures of different settings";
  size_t equal = 0;
  for (size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return static_cast<double>(equal) / a.size();
}

}  // namespace llmctl::data
