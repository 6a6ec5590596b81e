// The rules of default settings, which take a tenth of a second to compile: once for all tests.
#pragma once

#include <memory>

#include "common/base/check.h"
#include "worker/data/pii/pii_cleaner.h"

namespace llmctl::data {

inline const PiiRules& DefaultRules() {
  static const PiiRules* const rules = [] {
    absl::StatusOr<std::unique_ptr<PiiRules>> made = PiiRules::Create({});
    CHECK(made.ok()) << made.status().message();
    return made->release();
  }();
  return *rules;
}

}  // namespace llmctl::data
