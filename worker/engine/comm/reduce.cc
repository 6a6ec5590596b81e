#include "worker/engine/comm/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/check.h"

namespace llmctl::engine::comm {
namespace {

float FromBfloat16(uint16_t bits) {
  uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t ToBfloat16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof(wide));
  return static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
}

template <typename T>
void AccumulateAs(Op op, void* into, const void* from, int64_t count) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  if (op == Op::kAllReduceMax) {
    for (int64_t i = 0; i < count; ++i) a[i] = std::max(a[i], b[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) a[i] += b[i];
  }
}

void AccumulateBfloat16(Op op, void* into, const void* from, int64_t count) {
  uint16_t* a = static_cast<uint16_t*>(into);
  const uint16_t* b = static_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < count; ++i) {
    float x = FromBfloat16(a[i]);
    float y = FromBfloat16(b[i]);
    a[i] = ToBfloat16(op == Op::kAllReduceMax ? std::max(x, y) : x + y);
  }
}

}  // namespace

int64_t ElementBytes(DataType type) {
  switch (type) {
    case DataType::kFloat32: return 4;
    case DataType::kBfloat16: return 2;
    case DataType::kFloat64: return 8;
    case DataType::kInt64: return 8;
    case DataType::kByte: return 1;
  }
  CHECK(false) << "no such data type: " << static_cast<int>(type);
  return 0;
}

void Accumulate(Op op, DataType type, void* into, const void* from, int64_t count) {
  CHECK(op == Op::kAllReduceSum || op == Op::kAllReduceMax || op == Op::kReduceScatterSum);
  switch (type) {
    case DataType::kFloat32: return AccumulateAs<float>(op, into, from, count);
    case DataType::kBfloat16: return AccumulateBfloat16(op, into, from, count);
    case DataType::kFloat64: return AccumulateAs<double>(op, into, from, count);
    case DataType::kInt64: return AccumulateAs<int64_t>(op, into, from, count);
    case DataType::kByte: break;
  }
  CHECK(false) << "bytes cannot be reduced";
}

}  // namespace llmctl::engine::comm
