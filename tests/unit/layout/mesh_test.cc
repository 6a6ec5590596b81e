#include "common/layout/mesh.h"

#include <gtest/gtest.h>

namespace llmctl::layout {
namespace {

MeshVector Sizes(int tensor, int context, int expert, int data, int pipeline) {
  return {{tensor, context, expert, data, pipeline}};
}

TEST(Mesh, RankAndCoordinatesAreInverse) {
  Mesh mesh = *Mesh::Create(Sizes(2, 1, 3, 4, 2));

  EXPECT_EQ(mesh.size(), 48);
  for (int rank = 0; rank < mesh.size(); ++rank) EXPECT_EQ(mesh.RankOf(mesh.CoordinatesOf(rank)), rank);
}

TEST(Mesh, TensorParallelRanksAreNeighboursAndStagesAreFarthestApart) {
  Mesh mesh = *Mesh::Create(Sizes(2, 1, 1, 4, 2));

  EXPECT_EQ(mesh.Neighbour(0, MeshAxis::kTensor, 1), 1);
  EXPECT_EQ(mesh.Neighbour(0, MeshAxis::kData, 1), 2);
  EXPECT_EQ(mesh.Neighbour(0, MeshAxis::kPipeline, 1), 8);
}

TEST(Mesh, NeighboursDifferInOneCoordinateOnly) {
  Mesh mesh = *Mesh::Create(Sizes(2, 2, 1, 3, 2));

  MeshVector found = mesh.CoordinatesOf(mesh.Neighbour(17, MeshAxis::kData, 0));

  MeshVector expected = mesh.CoordinatesOf(17);
  expected[MeshAxis::kData] = 0;
  EXPECT_EQ(found, expected);
}

TEST(Mesh, RefusesSizesThatAreNoSizes) {
  EXPECT_EQ(Mesh::Create(Sizes(1, 1, 1, 0, 1)).status().message(),
            "mesh: size of the data axis: expected at least 1, found 0");
  EXPECT_FALSE(Mesh::Create(Sizes(1 << 20, 1 << 20, 1, 1, 1)).ok());
}

}  // namespace
}  // namespace llmctl::layout
