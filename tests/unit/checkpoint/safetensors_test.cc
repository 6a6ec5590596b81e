#include "worker/engine/checkpoint/safetensors.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::checkpoint {
namespace {

using ::testing::HasSubstr;

// A file's bytes with this header text and so many bytes of data.
std::string FileWith(std::string header, size_t data_bytes) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, 'd');
}

std::string Refusal(const std::string& header, size_t data_bytes) {
  std::string file = FileWith(header, data_bytes);
  absl::Status status = ParseSafetensorsHeader(file, file.size()).status();
  EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
  return std::string(status.message());
}

TEST(SafetensorsHeader, AcceptsWhatTheFormatAllows) {
  EXPECT_EQ(Refusal(R"({})", 0), "");
  EXPECT_EQ(
      Refusal(R"({"__metadata__": {"a": "b"}, "x": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]}}   )", 2),
      "");
  EXPECT_EQ(Refusal(R"({"y": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]},
                        "x": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}})",
                    6),
            "");
  EXPECT_EQ(Refusal(R"({"x": {"dtype": "F32", "shape": [0, 7], "data_offsets": [0, 0]}})", 0), "");
}

TEST(SafetensorsHeader, RefusesOffsetsThatDoNotTileTheData) {
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})", 3),
              HasSubstr("end at byte 2"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}})", 3), HasSubstr("has only 3"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})", 3), HasSubstr("gap"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                          "y": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
                      3),
              HasSubstr("overlaps"));
}

TEST(SafetensorsHeader, RefusesFieldsThatContradictEachOther) {
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}})", 4),
              HasSubstr("header.x.data_offsets: span 4 bytes"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}})", 0),
              HasSubstr("not what shape and dtype need"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "F31", "shape": [1], "data_offsets": [0, 4]}})", 4), HasSubstr("dtype"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})", 1), HasSubstr("shape"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [1, 0]}})", 1), HasSubstr("data_offsets"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0]}})", 1), HasSubstr("data_offsets"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 18446744073709551615]}})", 1),
              HasSubstr("data_offsets"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "more": 1}})", 1),
              HasSubstr("unknown field"));
  EXPECT_THAT(Refusal(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
                          "x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})",
                      1),
              HasSubstr("occurs twice"));
  EXPECT_THAT(Refusal(R"({"__metadata__": {"a": 1}})", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(Refusal(R"({"x": 5})", 0), HasSubstr("expected an object"));
  EXPECT_THAT(Refusal(R"([])", 0), HasSubstr("'{'"));
  EXPECT_THAT(Refusal(" {}", 0), HasSubstr("'{'"));
}

TEST(SafetensorsHeader, RefusesALengthThatIsNotThere) {
  std::string file = FileWith("{}", 0);
  for (uint64_t length : {uint64_t{3}, uint64_t{1} << 32, ~uint64_t{0}}) {
    std::memcpy(file.data(), &length, 8);
    EXPECT_TRUE(absl::IsDataLoss(ParseSafetensorsHeader(file, file.size()).status())) << length;
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseSafetensorsHeader("1234567", 7).status()));
}

TEST(Safetensors, WrittenBytesAreTheDocumentedFormat) {
  TemporaryDirectory folder;
  float x[2] = {1, 2};
  uint8_t y[3] = {7, 8, 9};

  absl::StatusOr<WrittenFile> written = WriteSafetensors(
      folder / "a.safetensors", {{"x", DataType::kF32, {2}, x}, {"y", DataType::kU8, {1, 3}, y}}, {{"format", "pt"}});

  ASSERT_TRUE(written.ok()) << written.status();
  std::string header = R"({"__metadata__":{"format":"pt"},"x":{"data_offsets":[0,8],"dtype":"F32","shape":[2]},)"
                       R"("y":{"data_offsets":[8,11],"dtype":"U8","shape":[1,3]}})";
  header.resize((header.size() + 8 + 63) / 64 * 64 - 8, ' ');
  std::string expected = FileWith(header, 0) + std::string(reinterpret_cast<char*>(x), 8) + "\x07\x08\x09";
  EXPECT_EQ(*ReadFile(folder / "a.safetensors"), expected);
  EXPECT_EQ(written->bytes, static_cast<int64_t>(expected.size()));
  EXPECT_EQ(written->checksum, Checksum128(expected));
  EXPECT_EQ(written->tensors[1].checksum, Checksum128("\x07\x08\x09"));
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  TemporaryDirectory folder;
  std::vector<float> big(3 << 20);
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<float>(i);
  double scalar = 0.1;
  std::string path = folder / "a.safetensors";
  ASSERT_TRUE(WriteSafetensors(
                  path, {{"big", DataType::kF32, {3, 1 << 20}, big.data()}, {"scalar", DataType::kF64, {}, &scalar}})
                  .ok());

  auto reader = SafetensorsReader::Open(path);

  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->tensors().size(), 2u);
  const TensorEntry& entry = (*reader)->tensors()[0];
  EXPECT_EQ(entry.name, "big");
  EXPECT_THAT(entry.shape, ::testing::ElementsAre(3, 1 << 20));
  EXPECT_EQ(std::memcmp((*reader)->TensorBytes(entry).data(), big.data(), big.size() * 4), 0);
  EXPECT_EQ(std::memcmp((*reader)->TensorBytes((*reader)->tensors()[1]).data(), &scalar, 8), 0);
}

TEST(Safetensors, DoesNotOverwriteAFile) {
  TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "a.safetensors", "precious").ok());

  EXPECT_TRUE(absl::IsAlreadyExists(WriteSafetensors(folder / "a.safetensors", {}).status()));
  EXPECT_EQ(*ReadFile(folder / "a.safetensors"), "precious");
}

}  // namespace
}  // namespace llmctl::checkpoint
