// Box: which part of a tensor a stored slice is, in the coordinates of the whole tensor.
//
// A checkpoint written by any layout must load on any other, so slices are not numbered by rank: each is named
// after the tensor and the half-open box it covers,
//
//   model.layers.0.mlp.up_proj.weight@0:352,0:256
//
// and a reader assembles whatever box it wants from the boxes that are there. A whole tensor is one box; a
// scalar's is empty ("name@").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::checkpoint {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;  // one past the last
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

using Box = std::vector<Range>;  // a range per dimension

Box WholeBox(absl::Span<const int64_t> shape);
std::vector<int64_t> BoxShape(const Box& box);
int64_t BoxElements(const Box& box);
// "0:352,0:256"
std::string BoxText(const Box& box);

// The common part, or false if there is none. Boxes of different rank have none.
bool Intersect(const Box& a, const Box& b, Box& out);

struct SliceName {
  std::string tensor;
  Box box;
};

std::string FormatSliceName(absl::string_view tensor, const Box& box);
// InvalidArgument unless `name` is what FormatSliceName writes: no sign, no leading zero, begin < end, and
// fewer than 2^62 elements.
absl::StatusOr<SliceName> ParseSliceName(absl::string_view name);

// An array that holds `box` of a tensor, densely, last dimension fastest.
struct BoxData {
  const Box& box;
  const char* data;
};
struct MutableBoxData {
  const Box& box;
  char* data;
};

// Copies what `from` and `to` have in common; returns the number of elements copied.
int64_t CopyCommon(BoxData from, MutableBoxData to, int64_t element_bytes);

}  // namespace llmctl::checkpoint
