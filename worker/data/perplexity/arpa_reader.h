// Reads n-gram language models in the ARPA format, strictly: what is not as the format says is an error with the file
// and the line, never a guess.
//
//   \data\                      blank lines and lines that begin with # may stand before it
//   ngram 1=4                   one line per order, from 1 on
//   ngram 2=3
//
//   \1-grams:
//   -0.6<tab>the<tab>-0.3       log10 of the probability, the words, log10 of the back-off weight
//   ...
//   \end\                       only blank lines follow
//
// An n-gram of the highest order has no back-off weight (a 0 is let pass); for others it may be missing, which is an
// error only once a longer n-gram has it as its context (ngram_model.h looks at that). Refused are numbers that are
// not finite, log probabilities above 0, counts that differ from the header, empty words. Words are separated by
// blanks or tabs; a line may end in CR LF.
//
// Memory: the buffer, which is as long as the longest line (at most 1 MiB) and 64 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

inline constexpr int kNgramOrderMax = 6;

struct ArpaNgram {
  int order = 0;
  std::array<absl::string_view, kNgramOrderMax> words;  // the first `order`; they hold until the next is read
  float log_probability = 0;
  float log_backoff = 0;
  bool has_backoff = false;
};

// Gives at most `bytes_max` bytes, at least one but at the end.
using ByteFeed = std::function<absl::StatusOr<size_t>(char* out, size_t bytes_max)>;

class ArpaReader {
 public:
  // A file, gzip-compressed (any number of members) or not: its first bytes tell.
  static absl::StatusOr<ArpaReader> OpenFile(const std::string& path);
  // `name` is for messages. `bytes_hint` bounds what is allocated on the header's word; 0 if not known.
  static absl::StatusOr<ArpaReader> Open(ByteFeed feed, std::string name, uint64_t bytes_hint);
  // The text of a model itself, which outlives the reader.
  static absl::StatusOr<ArpaReader> OpenText(absl::string_view text, std::string name);

  int order() const { return static_cast<int>(counts_.size()); }
  // Of each order, as the header says.
  const std::vector<uint64_t>& counts() const { return counts_; }
  uint64_t bytes_hint() const { return bytes_hint_; }

  // The next n-gram, lower orders first; false at the end of the model.
  absl::StatusOr<bool> Next(ArpaNgram& out);

  // Where the n-gram given last stands.
  uint64_t line() const { return line_; }
  // InvalidArgument: "read model.arpa: line 12: <what>".
  absl::Status Fault(absl::string_view what) const { return FaultAt(line_, what); }
  absl::Status FaultAt(uint64_t line, absl::string_view what) const;

 private:
  ArpaReader(ByteFeed feed, std::string name, uint64_t bytes_hint);

  absl::StatusOr<bool> ReadLine(absl::string_view& line);
  absl::StatusOr<bool> ReadFilledLine(absl::string_view& line);
  absl::Status ReadHeader();
  absl::Status ReadCount(absl::string_view line);
  absl::Status ReadSectionTitle(absl::string_view line) const;
  absl::Status ReadEnd(absl::string_view line);
  absl::Status ParseNgram(absl::string_view line, ArpaNgram& out) const;
  absl::Status ParseBackoff(absl::string_view rest, ArpaNgram& out) const;
  absl::Status ParseNumber(absl::string_view& rest, absl::string_view what, float& out) const;

  ByteFeed feed_;
  std::string name_;
  uint64_t bytes_hint_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not yet read, in buffer_
  bool fed_ = false;  // to the end
  uint64_t line_ = 0;
  std::vector<uint64_t> counts_;
  int section_ = 0;    // order that is read
  uint64_t left_ = 0;  // in it, as the header says
};

}  // namespace llmctl::data
