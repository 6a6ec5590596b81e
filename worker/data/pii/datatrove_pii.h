// What datatrove 0.10.1's PIIFormatter finds, in linear time. Its own expression for e-mail tries every start of a long
// run.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/pii/pattern.h"
#include "worker/data/pii/text_scan.h"

namespace llmctl::data {

// Const after construction, safe from any thread.
class DatatrovePii {
 public:
  DatatrovePii();

  // Into scan.spans, in order.
  void FindEmails(const TextScan& scan) const;
  void FindIpv4(const TextScan& scan) const;

 private:
  const Pattern domain_;
  const Pattern quad_;
};

}  // namespace llmctl::data
