// Mesh: how the ranks of a job are arranged along the axes of parallelism.
//
// A rank has one coordinate per axis, and rank numbers are mixed-radix numbers of the coordinates. The order
// of the axes is the order of what they cost: tensor parallelism talks most and turns fastest, so its ranks
// are neighbours and stay inside a host; then context and expert, then data, and pipeline stages, which talk
// least, across the slowest links.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"

namespace llmctl::layout {

// Fastest first.
enum class MeshAxis { kTensor, kContext, kExpert, kData, kPipeline };
inline constexpr int kMeshAxes = 5;

// One number per axis.
struct MeshVector {
  std::array<int, kMeshAxes> values{};

  int& operator[](MeshAxis axis) { return values[static_cast<int>(axis)]; }
  int operator[](MeshAxis axis) const { return values[static_cast<int>(axis)]; }
  bool operator==(const MeshVector&) const = default;
};

class Mesh {
 public:
  // InvalidArgument when a size is below 1 or the product overflows an int.
  static absl::StatusOr<Mesh> Create(const MeshVector& sizes);

  int size() const { return size_; }
  int size(MeshAxis axis) const { return sizes_[axis]; }

  MeshVector CoordinatesOf(int rank) const;
  int RankOf(const MeshVector& coordinates) const;
  // The rank at `position` of the group of `rank` along `axis`.
  int Neighbour(int rank, MeshAxis axis, int position) const;

 private:
  explicit Mesh(const MeshVector& sizes, int size) : sizes_(sizes), size_(size) {}

  MeshVector sizes_;
  int size_;
};

}  // namespace llmctl::layout
