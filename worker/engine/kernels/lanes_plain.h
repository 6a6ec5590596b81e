// One fp64 lane: the reference. Included by table_plain.cc only.
#pragma once

#include <cmath>

#include "worker/engine/kernels/lanes.h"
#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

struct LanesPlain {
  using Scalar = double;
  using Vector = double;
  static constexpr int kWidth = 1;

  template <typename LanesKind>
  static double Load(const double* p, LanesKind) {
    return *p;
  }
  template <typename LanesKind>
  static void Store(double* p, double v, LanesKind) {
    *p = v;
  }

  static double Set(double x) { return x; }
  static double Add(double a, double b) { return a + b; }
  static double Sub(double a, double b) { return a - b; }
  static double Mul(double a, double b) { return a * b; }
  static double Div(double a, double b) { return a / b; }
  static double Max(double a, double b) { return a > b ? a : b; }
  static double Sqrt(double a) { return std::sqrt(a); }
  static double MulAdd(double a, double b, double c) { return a * b + c; }
  static double Sum(double v) { return v; }
  static double Largest(double v) { return v; }
  static double Exp(double x) { return std::exp(x); }
};

}  // namespace llmctl::engine::kernels
