// Finds personal data in texts and replaces it: PiiRules once, a PiiCleaner per thread.
//
//   absl::StatusOr<std::unique_ptr<PiiRules>> rules = PiiRules::Create(settings, std::move(key));
//   PiiCleaner cleaner(**rules);                        // scratch of one thread
//   PiiOutcome outcome = cleaner.Apply(text, counters);  // text is the cleaned one, if it is kept
//
// Idea: one pass of Vectorscan over the text finds where something could be: an '@', seven digits close together, the
// prefix of a key. At each such place RE2 and a validator (check digits, registries, number plans) look at a window of
// fixed size, so that the work is linear in the text however odd it is; work() counts it.
//
// A match stands in the way of its neighbours ("a@b.com@c.org"): what was found is covered, and the text is looked at
// again until nothing more is found, at most kPiiRoundsMax times. A text whose finds were all replaced has none left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/pii/pii_settings.h"

namespace llmctl::data {

inline constexpr int kPiiRoundsMax = 8;

// text[begin, end), at borders of characters.
struct PiiSpan {
  size_t begin = 0;
  size_t end = 0;
  PiiType type = PiiType::kEmail;

  bool operator==(const PiiSpan&) const = default;
};

struct PiiCounters {
  std::array<int64_t, kPiiTypes> found = {};    // by PiiType; of documents that are dropped too
  std::array<int64_t, kPiiTypes> changed = {};  // replaced or given a pseudonym
  int64_t documents = 0;
  int64_t documents_changed = 0;
  int64_t documents_dropped = 0;

  void Add(const PiiCounters& other);
};

struct PiiOutcome {
  bool keep = true;
  std::string reason;    // "pii_api_key" of a document that is dropped: the first of PiiType's order
  double value = 0;      // how many of that type
  double threshold = 0;  // more than this many drop it
  int64_t changed = 0;   // spans
};

// Const after construction, safe from any thread. Compiling takes some 100 ms of CPU and keeps 0.7 MB; what RE2 learns
// of texts adds some MB.
class PiiRules {
 public:
  // `key` is needed where an action is kPseudonym. Fails on settings that Validate() refuses, a missing key, and a
  // processor without SSE 4.2.
  static absl::StatusOr<std::unique_ptr<PiiRules>> Create(PiiSettings settings, std::optional<PiiKey> key = {});
  ~PiiRules();
  PiiRules(const PiiRules&) = delete;
  PiiRules& operator=(const PiiRules&) = delete;

  const PiiSettings& settings() const;

 private:
  friend class PiiCleaner;
  struct Parts;
  explicit PiiRules(std::unique_ptr<Parts> parts);
  const std::unique_ptr<const Parts> parts_;
};

// Not thread-safe. Memory: 5 KB, 48 bytes per span and, where a document has one, two copies of the largest such.
class PiiCleaner {
 public:
  // `rules` must outlive this.
  explicit PiiCleaner(const PiiRules& rules);
  ~PiiCleaner();

  // In order and without overlap; valid until the next call. `text` is valid UTF-8 of less than 4 GB.
  const std::vector<PiiSpan>& Find(absl::string_view text);

  // Finds and acts. A document that is dropped is left as it is.
  PiiOutcome Apply(std::string& text, PiiCounters& counters);

  // Bytes looked at in the last call, once for each time: what bounds its duration.
  uint64_t work() const;

 private:
  struct Scratch;
  PiiOutcome ApplyDatatrove(std::string& text, PiiCounters& counters);
  void FindOnce(absl::string_view text);
  const PiiRules::Parts& parts_;
  const std::unique_ptr<Scratch> scratch_;
};

}  // namespace llmctl::data
