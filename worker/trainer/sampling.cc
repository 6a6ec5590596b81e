#include "worker/trainer/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace llmctl::trainer {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// Bytes of the character that `lead` begins; 0 if it begins none.
size_t CharacterBytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Whether `second` may follow `lead`: excludes overlong forms, surrogates and what lies above U+10FFFF.
bool MayFollow(unsigned char lead, unsigned char second) {
  if (lead == 0xE0) return second >= 0xA0 && second <= 0xBF;
  if (lead == 0xED) return second >= 0x80 && second <= 0x9F;
  if (lead == 0xF0) return second >= 0x90 && second <= 0xBF;
  if (lead == 0xF4) return second >= 0x80 && second <= 0x8F;
  return IsContinuation(second);
}

// Bytes at the start of `text` that are a character or may become one.
size_t ValidPrefix(absl::string_view text, size_t wanted) {
  size_t length = 1;
  while (length < std::min(wanted, text.size())) {
    unsigned char byte = static_cast<unsigned char>(text[length]);
    bool fits = length == 1 ? MayFollow(static_cast<unsigned char>(text[0]), byte) : IsContinuation(byte);
    if (!fits) break;
    ++length;
  }
  return length;
}

}  // namespace

int32_t SampleToken(const std::vector<float>& logits, const SamplingOptions& options, double uniform) {
  CHECK(!logits.empty());
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  auto more_likely = [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] != logits[static_cast<size_t>(b)]
               ? logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]
               : a < b;
  };
  size_t kept = options.top_k > 0 ? std::min(logits.size(), static_cast<size_t>(options.top_k)) : logits.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(), more_likely);
  if (options.temperature <= 0) return order[0];

  std::vector<double> weights(kept);
  double top = logits[static_cast<size_t>(order[0])];
  for (size_t i = 0; i < kept; ++i) {
    weights[i] = std::exp((logits[static_cast<size_t>(order[i])] - top) / options.temperature);
  }
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < kept; ++i) {
    if (left < weights[i]) return order[i];
    left -= weights[i];
  }
  return order[kept - 1];
}

std::string Utf8Stream::Push(absl::string_view bytes) {
  pending_.append(bytes.data(), bytes.size());
  std::string out;
  absl::string_view rest = pending_;
  while (!rest.empty()) {
    size_t wanted = CharacterBytes(static_cast<unsigned char>(rest[0]));
    size_t valid = wanted == 0 ? 1 : ValidPrefix(rest, wanted);
    if (valid == wanted) {
      out.append(rest.data(), wanted);
    } else if (wanted > 0 && valid == rest.size()) {
      break;  // may still become a character
    } else {
      out += kReplacement;
    }
    rest.remove_prefix(valid);
  }
  pending_ = std::string(rest);
  return out;
}

std::string Utf8Stream::Finish() { return std::exchange(pending_, "").empty() ? "" : kReplacement; }

}  // namespace llmctl::trainer
