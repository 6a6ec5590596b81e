#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/json/strict_json.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace llmctl::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr char kMetadataKey[] = "__metadata__";
// The limit of the reference implementation.
constexpr uint64_t kHeaderBytesMax = 100'000'000;
constexpr size_t kLengthBytes = 8;
// Data starts on a cache line of the mapping, so that it can be used in place.
constexpr size_t kAlignment = 64;

struct TypeRow {
  DataType type;
  const char* name;
  int64_t bytes;
};
constexpr TypeRow kTypes[] = {
    {DataType::kF64, "F64", 8},   {DataType::kF32, "F32", 4}, {DataType::kF16, "F16", 2}, {DataType::kBF16, "BF16", 2},
    {DataType::kI64, "I64", 8},   {DataType::kI32, "I32", 4}, {DataType::kI16, "I16", 2}, {DataType::kI8, "I8", 1},
    {DataType::kU64, "U64", 8},   {DataType::kU32, "U32", 4}, {DataType::kU16, "U16", 2}, {DataType::kU8, "U8", 1},
    {DataType::kBool, "BOOL", 1},
};

const TypeRow& Row(DataType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  CHECK(false) << "unknown data type " << static_cast<int>(type);
  return kTypes[0];
}

// The bytes of a tensor, or false where they do not fit 63 bits.
bool TensorBytes(DataType type, const std::vector<int64_t>& shape, int64_t& bytes) {
  bytes = ElementBytes(type);
  for (int64_t size : shape) {
    if (size != 0 && bytes > std::numeric_limits<int64_t>::max() / size) return false;
    bytes *= size;
  }
  return true;
}

TensorEntry ReadEntry(const std::string& name, ObjectReader& reader) {
  TensorEntry entry;
  entry.name = name;
  absl::StatusOr<DataType> type = ParseDataType(reader.String("dtype"));
  if (!type.ok()) reader.Fail("dtype", type.status().message());
  entry.type = type.value_or(DataType::kU8);
  entry.shape = reader.Integers("shape", 0);
  std::vector<int64_t> offsets = reader.Integers("data_offsets", 0);
  reader.Finish();
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    reader.Fail("data_offsets", "expected [begin, end] with begin <= end");
    return entry;
  }
  entry.offset = offsets[0];
  entry.bytes = offsets[1] - offsets[0];
  int64_t expected = 0;
  if (!TensorBytes(entry.type, entry.shape, expected) || expected != entry.bytes) {
    reader.Fail("data_offsets", absl::StrCat("span ", entry.bytes, " bytes, which is not what shape and dtype need"));
  }
  return entry;
}

absl::StatusOr<SafetensorsHeader> ReadHeader(const nlohmann::json& value) {
  SafetensorsHeader header;
  JsonErrors errors;
  ObjectReader root(value, "header", errors);
  for (const auto& [name, element] : value.items()) {
    if (name == kMetadataKey) {
      header.metadata = root.Strings(kMetadataKey);
    } else {
      ObjectReader reader(element, absl::StrCat("header.", name), errors);
      header.tensors.push_back(ReadEntry(name, reader));
    }
  }
  LLM_RETURN_IF_ERROR(errors.status());
  return header;
}

// Tensors, by offset, must cover the data exactly: a gap could hide bytes, an overlap is never meant.
absl::Status CheckCoverage(std::vector<TensorEntry>& tensors, int64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  int64_t at = 0;
  for (const TensorEntry& entry : tensors) {
    if (entry.offset != at) {
      return absl::DataLossError(absl::StrCat("tensor ", entry.name, " starts at byte ", entry.offset,
                                              " of the data, expected ", at, ": ",
                                              entry.offset < at ? "it overlaps its neighbour" : "there is a gap"));
    }
    if (entry.bytes > data_bytes - at) {
      return absl::DataLossError(absl::StrCat("tensor ", entry.name, " has ", entry.bytes, " bytes from byte ", at,
                                              " of the data on, the file has only ", data_bytes));
    }
    at += entry.bytes;
  }
  if (at == data_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the tensors end at byte ", at, " of the data, the file has ", data_bytes));
}

}  // namespace

int64_t ElementBytes(DataType type) { return Row(type).bytes; }
absl::string_view DataTypeName(DataType type) { return Row(type).name; }

absl::StatusOr<DataType> ParseDataType(absl::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (name == row.name) return row.type;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown dtype \"", name, "\""));
}

int64_t TensorView::bytes() const {
  int64_t out = 0;
  CHECK(TensorBytes(type, shape, out)) << "tensor " << name << " is larger than memory";
  return out;
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view start, int64_t file_bytes) {
  if (start.size() < kLengthBytes || static_cast<int64_t>(start.size()) > file_bytes) {
    return absl::DataLossError(absl::StrCat("file of ", file_bytes, " bytes is too short for a safetensors header"));
  }
  uint64_t length = 0;
  std::memcpy(&length, start.data(), kLengthBytes);
  if (length > kHeaderBytesMax || length > start.size() - kLengthBytes) {
    return absl::DataLossError(absl::StrCat("header is said to have ", length, " bytes, but the file has ", file_bytes,
                                            " in all, and ", kHeaderBytesMax, " is the limit"));
  }
  absl::string_view text = start.substr(kLengthBytes, length);
  if (text.empty() || text.front() != '{') return absl::DataLossError("header does not begin with '{'");
  absl::StatusOr<nlohmann::json> value = ParseStrictJson(text, "header");
  if (!value.ok()) return absl::DataLossError(value.status().message());
  absl::StatusOr<SafetensorsHeader> header = ReadHeader(*value);
  if (!header.ok()) return absl::DataLossError(header.status().message());
  header->data_offset = kLengthBytes + length;
  LLM_RETURN_IF_ERROR(CheckCoverage(header->tensors, file_bytes - header->data_offset));
  return header;
}

std::string SafetensorsHeaderText(absl::Span<const TensorView> tensors,
                                  const std::map<std::string, std::string>& metadata) {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  int64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    CHECK(!header.contains(tensor.name)) << "tensor " << tensor.name << " is written twice";
    header[tensor.name] = {{"dtype", std::string(DataTypeName(tensor.type))},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes()}}};
    offset += tensor.bytes();
  }
  std::string text = JsonText(header, /*indented=*/false);
  text.append((kAlignment - (text.size() + kLengthBytes) % kAlignment) % kAlignment, ' ');
  uint64_t length = text.size();
  std::string out(reinterpret_cast<const char*>(&length), kLengthBytes);
  return out + text;
}

}  // namespace llmctl::checkpoint
