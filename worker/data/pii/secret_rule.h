// Keys to services and private keys. A key to a service is known by its prefix, or by the name it is given to.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "worker/data/pii/pattern.h"
#include "worker/data/pii/text_scan.h"

namespace llmctl::data {

// Const after construction, safe from any thread.
class SecretRule {
 public:
  SecretRule();

  // What finds a candidate of kind i, as a Vectorscan pattern, for each i.
  const std::vector<std::string>& prefixes() const { return prefixes_; }

  // The prefix of kind i ends at `end`.
  void FindKey(const TextScan& scan, size_t kind, size_t end) const;
  // A name that keys are given to ("api_key") ends at `end`.
  void FindNamedKey(const TextScan& scan, size_t end) const;
  // "-----BEGIN ... PRIVATE KEY-----" ends at `end`.
  void FindPrivateKey(TextScan& scan, size_t end) const;

 private:
  std::vector<std::string> prefixes_;
  std::vector<std::unique_ptr<Pattern>> bodies_;
  const Pattern named_value_;
  const Pattern pem_end_;
};

}  // namespace llmctl::data
