#include "worker/data/perplexity/arpa_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <zlib.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kLineBytesMax = 1 << 20;
// A compressed model is about a quarter of its text; more is believed only as it comes.
constexpr uint64_t kInflation = 16;

bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool IsSpace(char c) { return IsBlank(c) || c == '\r' || c == '\v' || c == '\f'; }

bool IsAllSpace(absl::string_view line) {
  for (char c : line) {
    if (!IsSpace(c)) return false;
  }
  return true;
}

absl::string_view Shown(absl::string_view line) { return line.substr(0, 120); }

struct CloseGz {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzFile = std::shared_ptr<std::remove_pointer_t<gzFile>>;

ByteFeed FeedOf(GzFile file, const std::string& path) {
  return [file = std::move(file), path](char* out, size_t bytes_max) -> absl::StatusOr<size_t> {
    errno = 0;
    int read = gzread(file.get(), out, static_cast<unsigned>(std::min<size_t>(bytes_max, 1 << 30)));
    int error = Z_OK;
    const char* said = gzerror(file.get(), &error);
    if (error == Z_ERRNO) return ErrnoStatus(errno, absl::StrCat("read ", path));
    // A file that ends inside a member reads as one that is short, and says so here only.
    if (read < 0 || (read == 0 && error != Z_OK)) {
      return absl::DataLossError(absl::StrCat("read ", path, ": the gzip data is damaged or cut short: ", said));
    }
    return static_cast<size_t>(read);
  };
}

}  // namespace

ArpaReader::ArpaReader(ByteFeed feed, std::string name, uint64_t bytes_hint)
    : feed_(std::move(feed)), name_(std::move(name)), bytes_hint_(bytes_hint) {}

absl::StatusOr<ArpaReader> ArpaReader::OpenFile(const std::string& path) {
  std::error_code error;
  uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("read ", path));
  errno = 0;
  GzFile file(gzopen(path.c_str(), "rbe"), CloseGz());
  if (file == nullptr) return ErrnoStatus(errno == 0 ? ENOMEM : errno, absl::StrCat("open ", path));
  gzbuffer(file.get(), 256 << 10);
  const bool compressed = gzdirect(file.get()) == 0;
  return Open(FeedOf(std::move(file), path), path, compressed ? bytes * kInflation : bytes);
}

absl::StatusOr<ArpaReader> ArpaReader::OpenText(absl::string_view text, std::string name) {
  const uint64_t bytes = text.size();
  return Open(
      [text](char* out, size_t bytes_max) mutable -> absl::StatusOr<size_t> {
        size_t bytes = std::min(bytes_max, text.size());
        std::memcpy(out, text.data(), bytes);
        text.remove_prefix(bytes);
        return bytes;
      },
      std::move(name), bytes);
}

absl::StatusOr<ArpaReader> ArpaReader::Open(ByteFeed feed, std::string name, uint64_t bytes_hint) {
  ArpaReader reader(std::move(feed), std::move(name), bytes_hint);
  LLM_RETURN_IF_ERROR(reader.ReadHeader());
  return reader;
}

absl::Status ArpaReader::FaultAt(uint64_t line, absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("read ", name_, ": line ", line, ": ", what));
}

absl::StatusOr<bool> ArpaReader::ReadLine(absl::string_view& line) {
  size_t searched = 0;
  while (true) {
    size_t end = buffer_.find('\n', begin_ + searched);
    if (end != std::string::npos || (fed_ && begin_ < buffer_.size())) {
      end = std::min(end, buffer_.size());
      ++line_;
      line = absl::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = std::min(end + 1, buffer_.size());
      absl::ConsumeSuffix(&line, "\r");
      return true;
    }
    if (fed_) return false;
    searched = buffer_.size() - begin_;
    if (searched > kLineBytesMax) {
      return FaultAt(line_ + 1, absl::StrCat("it is longer than ", kLineBytesMax, " bytes; this is no ARPA file"));
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    buffer_.resize(searched + kReadBytes);
    LLM_ASSIGN_OR_RETURN(size_t read, feed_(buffer_.data() + searched, kReadBytes));
    buffer_.resize(searched + read);
    fed_ = read == 0;
  }
}

// The next line that is not all blank.
absl::StatusOr<bool> ArpaReader::ReadFilledLine(absl::string_view& line) {
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, ReadLine(line));
    if (!more || !IsAllSpace(line)) return more;
  }
}

absl::Status ArpaReader::ReadCount(absl::string_view line) {
  absl::string_view rest = line;
  size_t equals = rest.find('=');
  uint64_t order = 0, count = 0;
  if (!absl::ConsumePrefix(&rest, "ngram ") || equals == absl::string_view::npos ||
      !absl::SimpleAtoi(line.substr(6, equals - 6), &order) || !absl::SimpleAtoi(line.substr(equals + 1), &count)) {
    return Fault(absl::StrCat("expected a count as in \"ngram 1=5000\", or a blank line and \"\\1-grams:\", found \"",
                              Shown(line), "\""));
  }
  if (order != counts_.size() + 1) {
    return Fault(absl::StrCat("expected the count of ", counts_.size() + 1, "-grams, found that of ", order,
                              "-grams: orders are counted from 1 on, without gaps"));
  }
  if (order > kNgramOrderMax) {
    return Fault(absl::StrCat("the model has ", order, "-grams; at most ", kNgramOrderMax, "-grams can be read"));
  }
  counts_.push_back(count);
  return absl::OkStatus();
}

absl::Status ArpaReader::ReadHeader() {
  absl::string_view line;
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, ReadFilledLine(line));
    if (!more) return FaultAt(line_ + 1, "the file ends before \"\\data\\\", with which a model begins");
    if (line == "\\data\\") break;
    if (line[0] != '#') {
      return Fault(absl::StrCat("expected \"\\data\\\", found \"", Shown(line), "\"; this is no ARPA file"));
    }
  }
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, ReadLine(line));
    if (!more) return FaultAt(line_ + 1, "the file ends within its header");
    if (IsAllSpace(line)) {
      if (counts_.empty()) continue;
      break;
    }
    if (line[0] == '\\') break;
    LLM_RETURN_IF_ERROR(ReadCount(line));
  }
  if (counts_.empty()) return Fault("the header has no counts");
  if (counts_[0] == 0) return Fault("the header says that there are no 1-grams");
  if (IsAllSpace(line)) {
    LLM_ASSIGN_OR_RETURN(bool more, ReadFilledLine(line));
    if (!more) return FaultAt(line_ + 1, "the file ends after its header");
  }
  section_ = 1;
  left_ = counts_[0];
  return ReadSectionTitle(line);
}

absl::Status ArpaReader::ReadSectionTitle(absl::string_view line) const {
  std::string expected = absl::StrCat("\\", section_, "-grams:");
  if (line == expected) return absl::OkStatus();
  return Fault(absl::StrCat("expected \"", expected, "\", found \"", Shown(line), "\""));
}

absl::Status ArpaReader::ReadEnd(absl::string_view line) {
  if (line != "\\end\\") return Fault(absl::StrCat("expected \"\\end\\\", found \"", Shown(line), "\""));
  LLM_ASSIGN_OR_RETURN(bool more, ReadFilledLine(line));
  if (more) return Fault(absl::StrCat("found \"", Shown(line), "\" behind \"\\end\\\""));
  return absl::OkStatus();
}

absl::StatusOr<bool> ArpaReader::Next(ArpaNgram& out) {
  if (section_ == 0) return false;
  absl::string_view line;
  while (true) {
    LLM_ASSIGN_OR_RETURN(bool more, ReadFilledLine(line));
    if (!more) {
      return FaultAt(line_ + 1, left_ > 0 ? absl::StrCat("the file ends, but the header says that there are ", left_,
                                                         " more ", section_, "-grams")
                                          : std::string("the file ends without \"\\end\\\": it was cut"));
    }
    // No number begins with it.
    const bool title = line[0] == '\\';
    if (title != (left_ == 0)) {
      return Fault(absl::StrCat("the header says that there are ", counts_[section_ - 1], " ", section_,
                                "-grams, found ", title ? absl::StrCat("only ", counts_[section_ - 1] - left_)
                                                        : std::string("more of them")));
    }
    if (!title) break;
    if (section_ == order()) {
      LLM_RETURN_IF_ERROR(ReadEnd(line));
      section_ = 0;
      return false;
    }
    left_ = counts_[section_++];
    LLM_RETURN_IF_ERROR(ReadSectionTitle(line));
  }
  --left_;
  LLM_RETURN_IF_ERROR(ParseNgram(line, out));
  return true;
}

// Takes a number off the front of `rest`.
absl::Status ArpaReader::ParseNumber(absl::string_view& rest, absl::string_view what, float& out) const {
  const char* end = rest.data() + rest.size();
  std::from_chars_result result = std::from_chars(rest.data(), end, out);
  if (result.ec == std::errc::result_out_of_range) {
    double wide = 0;
    result = std::from_chars(rest.data(), end, wide);
    out = static_cast<float>(wide);  // smaller than a float can say is 0
  }
  const bool whole = result.ec == std::errc() && (result.ptr == end || IsBlank(*result.ptr));
  if (!whole || !std::isfinite(out)) {
    size_t word = 0;
    while (word < rest.size() && !IsBlank(rest[word])) ++word;
    return Fault(absl::StrCat("expected a finite number as ", what, ", found \"", Shown(rest.substr(0, word)), "\""));
  }
  rest.remove_prefix(result.ptr - rest.data());
  return absl::OkStatus();
}

absl::Status ArpaReader::ParseNgram(absl::string_view line, ArpaNgram& out) const {
  absl::string_view rest = line;
  LLM_RETURN_IF_ERROR(ParseNumber(rest, "log probability", out.log_probability));
  if (out.log_probability > 0) {
    return Fault(absl::StrCat("the log probability ", out.log_probability, " is above 0: its probability would be ",
                              "more than 1"));
  }
  out.order = section_;
  const char* at = rest.data();
  const char* const end = at + rest.size();
  for (int i = 0; i < section_; ++i) {
    while (at < end && IsBlank(*at)) ++at;
    const char* word = at;
    while (at < end && !IsBlank(*at)) ++at;
    if (at == word) return Fault(absl::StrCat("expected ", section_, " words, found ", i));
    out.words[i] = absl::string_view(word, at - word);
  }
  while (at < end && IsBlank(*at)) ++at;
  return ParseBackoff(absl::string_view(at, end - at), out);
}

absl::Status ArpaReader::ParseBackoff(absl::string_view rest, ArpaNgram& out) const {
  out.has_backoff = !rest.empty();
  out.log_backoff = 0;
  if (rest.empty()) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(ParseNumber(rest, absl::StrCat("back-off weight behind ", section_, " words"), out.log_backoff));
  if (!IsAllSpace(rest)) return Fault(absl::StrCat("found \"", Shown(rest), "\" behind the back-off weight"));
  if (section_ == order() && out.log_backoff != 0) {
    return Fault(absl::StrCat("an n-gram of the highest order has the back-off weight ", out.log_backoff));
  }
  return absl::OkStatus();
}

}  // namespace llmctl::data
