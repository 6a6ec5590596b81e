// The filters' numbers by the plainest possible code: sets of strings, a pass for each number. What the fast code is
// compared with; it knows nothing of ids, hashes and tables, and takes only the words from it.
#pragma once

#include <string>
#include <vector>

#include "worker/data/filters/filter_settings.h"
#include "worker/data/filters/filter_stats.h"

namespace llmctl::data {

GopherRepetitionStats NaiveRepetition(const std::string& text, const std::vector<std::string>& words, FilterMode mode);
GopherQualityStats NaiveQuality(const std::string& text, const std::vector<std::string>& words);
FineWebStats NaiveFineWeb(const std::string& text, const std::vector<std::string>& words);

}  // namespace llmctl::data
