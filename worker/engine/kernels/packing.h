// Packing of attention operands for MultiplyBlock: from rows in memory, A, to the block operand type P.
//
// P is Bf16 or float. A right operand in bf16 is interleaved by pairs of rows; both forms are addressed in the
// same way here: a packed matrix of `rows` x `columns` with leading dimension `columns` starts its column j at
// base + j * kPair, and row i (even for bf16) at base + i * columns.
#pragma once

#include <cstdint>
#include <type_traits>

#include "worker/engine/kernels/lanes.h"
#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

template <typename P>
inline constexpr int64_t kPair = 1;
template <>
inline constexpr int64_t kPair<Bf16> = 2;

// A strip of a matrix: `rows` rows of `columns` elements.
template <typename A>
struct Strip {
  const A* data;
  int64_t pitch;
  int64_t rows;
  int64_t columns;
};

template <typename L, typename A, typename P>
struct Packing {
  // out[columns x padded_rows] = transpose; columns beyond the strip's rows are zero.
  static void Transposed(const Strip<A>& x, int64_t padded_rows, P* out) {
    for (int64_t row0 = 0; row0 < padded_rows; row0 += kTile) {
      int64_t rows = x.rows - row0 < kTile ? x.rows - row0 : kTile;
      for (int64_t column = 0; column < x.columns; column += kPair<P>) {
        P* to = out + column * padded_rows + row0 * kPair<P>;
        const A* from = x.data + row0 * x.pitch + column;
        for (int64_t r = 0; r < rows; ++r) CopyPair(from + r * x.pitch, to + r * kPair<P>);
        for (int64_t i = rows * kPair<P>; i < kTile * kPair<P>; ++i) to[i] = P{};
      }
    }
  }

  // out[padded_rows x columns] = the strip; rows beyond it are zero.
  static void Straight(const Strip<A>& x, int64_t padded_rows, P* out) {
    if constexpr (kPair<P> == 1) {
      for (int64_t row = 0; row < padded_rows; ++row) {
        P* to = out + row * x.columns;
        ForLanes<L>(x.columns, [&](int64_t i, auto lanes) {
          L::Store(to + i, row < x.rows ? L::Load(x.data + row * x.pitch + i, lanes) : L::Set(0), lanes);
        });
      }
    } else {
      for (int64_t row = 0; row < padded_rows; row += 2) {
        const A* first = x.data + row * x.pitch;
        int64_t present = x.rows - row < 2 ? (x.rows > row ? x.rows - row : 0) : 2;
        L::Interleave(first, first + x.pitch, present, x.columns, out + row * x.columns);
      }
    }
  }

  // A left operand: the strip itself where the types agree, a copy in `scratch` otherwise.
  static const P* Left(const Strip<A>& x, P* scratch, int64_t* pitch) {
    if constexpr (std::is_same_v<A, P>) {
      *pitch = x.pitch;
      return x.data;
    } else {
      *pitch = x.columns;
      for (int64_t row = 0; row < x.rows; ++row) {
        ForLanes<L>(x.columns, [&](int64_t i, auto lanes) {
          L::Store(scratch + row * x.columns + i, L::Load(x.data + row * x.pitch + i, lanes), lanes);
        });
      }
      return scratch;
    }
  }

  static P One(A x) {
    if constexpr (std::is_same_v<A, P>) {
      return x;
    } else {
      return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
    }
  }

 private:
  static constexpr int64_t kTile = 16;

  static void CopyPair(const A* from, P* to) {
    if constexpr (std::is_same_v<A, P>) {
      __builtin_memcpy(to, from, kPair<P> * sizeof(P));
    } else {
      *to = One(*from);
    }
  }
};

}  // namespace llmctl::engine::kernels
