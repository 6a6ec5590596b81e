#include "common/layout/mesh.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"

namespace llmctl::layout {
namespace {

constexpr const char* kAxisNames[kMeshAxes] = {"tensor", "context", "expert", "data", "pipeline"};

}  // namespace

absl::StatusOr<Mesh> Mesh::Create(const MeshVector& sizes) {
  int64_t size = 1;
  for (int axis = 0; axis < kMeshAxes; ++axis) {
    if (sizes.values[axis] < 1) {
      return absl::InvalidArgumentError(absl::StrCat("mesh: size of the ", kAxisNames[axis],
                                                     " axis: expected at least 1, found ", sizes.values[axis]));
    }
    size *= sizes.values[axis];
    if (size > std::numeric_limits<int>::max()) {
      return absl::InvalidArgumentError("mesh: more ranks than an int can count; make an axis smaller");
    }
  }
  return Mesh(sizes, static_cast<int>(size));
}

MeshVector Mesh::CoordinatesOf(int rank) const {
  CHECK(rank >= 0 && rank < size_) << "rank " << rank << " of a mesh of " << size_;
  MeshVector coordinates;
  for (int axis = 0; axis < kMeshAxes; ++axis) {
    coordinates.values[axis] = rank % sizes_.values[axis];
    rank /= sizes_.values[axis];
  }
  return coordinates;
}

int Mesh::RankOf(const MeshVector& coordinates) const {
  int rank = 0;
  for (int axis = kMeshAxes - 1; axis >= 0; --axis) {
    int at = coordinates.values[axis];
    CHECK(at >= 0 && at < sizes_.values[axis]) << kAxisNames[axis] << " coordinate " << at;
    rank = rank * sizes_.values[axis] + at;
  }
  return rank;
}

int Mesh::Neighbour(int rank, MeshAxis axis, int position) const {
  MeshVector coordinates = CoordinatesOf(rank);
  coordinates[axis] = position;
  return RankOf(coordinates);
}

}  // namespace llmctl::layout
