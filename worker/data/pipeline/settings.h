// The corpus specification as settings of the stages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/contract/corpus_config.h"
#include "worker/data/dedup/exact_dedup.h"
#include "worker/data/dedup/near_settings.h"
#include "worker/data/filters/filter_settings.h"
#include "worker/data/language/language_settings.h"
#include "worker/data/mix/mix.h"
#include "worker/data/pack/pack_settings.h"
#include "worker/data/perplexity/length_balance.h"
#include "worker/data/perplexity/perplexity_filter.h"
#include "worker/data/pii/pii_settings.h"

namespace llmctl::data {

// "512K", "64M", "2GiB", "1T": powers of 1024. InvalidArgument for anything else.
absl::StatusOr<int64_t> ParseByteSize(absl::string_view text);

LanguageSettings LanguageSettingsOf(const contract::LanguageConfig& config);
PerplexitySettings PerplexitySettingsOf(const contract::PerplexityConfig& config);
PiiSettings PiiSettingsOf(const contract::PiiConfig& config);
LengthBalanceSettings LengthBalanceSettingsOf(const contract::LengthBalanceConfig& config);
FilterSettings QualitySettings(const contract::QualityConfig& config);
// One for each unit, in the order in which they are compared.
std::vector<ExactSettings> ExactDedupSettings(const std::optional<contract::ExactDedupConfig>& config);
NearSettings NearDedupSettings(const contract::NearDedupConfig& config);
MixSettings MixSettingsOf(const contract::MixConfig& config);
PackSettings PackSettingsOf(const contract::PackConfig& config);

}  // namespace llmctl::data
