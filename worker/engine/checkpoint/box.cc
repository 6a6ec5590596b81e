#include "worker/engine/checkpoint/box.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/base/check.h"

namespace llmctl::checkpoint {
namespace {

constexpr int64_t kElementsMax = int64_t{1} << 62;
constexpr size_t kRankMax = 8;

// Digits only, without a leading zero: one spelling per number, so that names can be compared as strings.
bool ParseIndex(absl::string_view text, int64_t& out) {
  if (text.empty() || text.size() > 18 || (text.size() > 1 && text[0] == '0')) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
  return absl::SimpleAtoi(text, &out);
}

// Elements between one index and the next of each dimension.
std::vector<int64_t> Strides(const Box& box) {
  std::vector<int64_t> strides(box.size(), 1);
  for (size_t d = box.size(); d-- > 1;) strides[d - 1] = strides[d] * box[d].size();
  return strides;
}

}  // namespace

Box WholeBox(absl::Span<const int64_t> shape) {
  Box box;
  for (int64_t size : shape) box.push_back({0, size});
  return box;
}

std::vector<int64_t> BoxShape(const Box& box) {
  std::vector<int64_t> shape;
  for (const Range& range : box) shape.push_back(range.size());
  return shape;
}

int64_t BoxElements(const Box& box) {
  int64_t elements = 1;
  for (const Range& range : box) elements *= range.size();
  return elements;
}

std::string BoxText(const Box& box) {
  return absl::StrJoin(box, ",",
                       [](std::string* out, const Range& range) { absl::StrAppend(out, range.begin, ":", range.end); });
}

bool Intersect(const Box& a, const Box& b, Box& out) {
  if (a.size() != b.size()) return false;
  out.resize(a.size());
  for (size_t d = 0; d < a.size(); ++d) {
    out[d] = {std::max(a[d].begin, b[d].begin), std::min(a[d].end, b[d].end)};
    if (out[d].begin >= out[d].end) return false;
  }
  return true;
}

std::string FormatSliceName(absl::string_view tensor, const Box& box) {
  return absl::StrCat(tensor, "@", BoxText(box));
}

absl::StatusOr<SliceName> ParseSliceName(absl::string_view name) {
  auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("slice name \"", name, "\": ", why, "; expected tensor@begin:end,begin:end,..."));
  };
  size_t at = name.rfind('@');
  if (at == absl::string_view::npos) return refuse("no '@'");
  if (at == 0) return refuse("the tensor has no name");
  SliceName out{std::string(name.substr(0, at)), {}};
  if (at + 1 == name.size()) return out;
  int64_t elements = 1;
  for (absl::string_view part : absl::StrSplit(name.substr(at + 1), ',')) {
    std::vector<absl::string_view> ends = absl::StrSplit(part, ':');
    Range range;
    if (ends.size() != 2 || !ParseIndex(ends[0], range.begin) || !ParseIndex(ends[1], range.end)) {
      return refuse(absl::StrCat("\"", part, "\" is no range"));
    }
    if (range.begin >= range.end) return refuse(absl::StrCat("the range ", part, " is empty"));
    if (range.size() > kElementsMax / elements) return refuse("too many elements");
    elements *= range.size();
    out.box.push_back(range);
    if (out.box.size() > kRankMax) return refuse(absl::StrCat("more than ", kRankMax, " dimensions"));
  }
  return out;
}

int64_t CopyCommon(BoxData from, MutableBoxData to, int64_t element_bytes) {
  Box common;
  if (!Intersect(from.box, to.box, common)) return 0;
  if (from.box == to.box || common.empty()) {
    std::memcpy(to.data, from.data, BoxElements(to.box) * element_bytes);
    return BoxElements(to.box);
  }
  std::vector<int64_t> from_strides = Strides(from.box), to_strides = Strides(to.box);
  size_t last = common.size() - 1;
  std::vector<int64_t> index;
  for (const Range& range : common) index.push_back(range.begin);
  size_t row_bytes = common[last].size() * element_bytes;
  // Row by row: an odometer over all dimensions but the last.
  while (true) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d <= last; ++d) {
      source += (index[d] - from.box[d].begin) * from_strides[d];
      target += (index[d] - to.box[d].begin) * to_strides[d];
    }
    std::memcpy(to.data + target * element_bytes, from.data + source * element_bytes, row_bytes);
    size_t d = last;
    while (d > 0 && ++index[d - 1] == common[d - 1].end) {
      index[d - 1] = common[d - 1].begin;
      --d;
    }
    if (d == 0) return BoxElements(common);
  }
}

}  // namespace llmctl::checkpoint
