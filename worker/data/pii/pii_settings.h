// What is taken for personal data, and what becomes of it.
//
// A type is one kind of thing that identifies somebody or opens something of theirs; docs/data/pii.md says what each
// covers. Each has an action of its own. The key of pseudonyms is no setting: settings are written into manifests and
// digests, the key never is (PiiKey).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

// In the order of precedence: of two that overlap, the one named first here is taken.
enum class PiiType : uint8_t {
  kPrivateKey,
  kUrlCredentials,
  kApiKey,
  kEmail,
  kIban,
  kChineseId,
  kCard,
  kUsSsn,
  kChineseMobile,
  kIpv6,
  kIpv4,
  kPhone,
};
inline constexpr int kPiiTypes = 12;

// "private_key", "url_credentials", "api_key", "email", "iban", "cn_id", "card", "us_ssn", "cn_mobile", "ipv6", "ipv4",
// "phone": in settings, reports and reasons ("pii_email").
absl::string_view PiiTypeName(PiiType type);
std::optional<PiiType> ParsePiiType(absl::string_view name);

enum class PiiAction : uint8_t {
  kReplace,    // by the replacement of the type
  kPseudonym,  // by a made-up one of the same form: the same for the same, under one key
  kDrop,       // the whole document
  kKeep,       // it is only counted
  kOff,        // it is not looked for
};
// "replace", "pseudonym", "drop", "keep", "off".
absl::string_view PiiActionName(PiiAction action);
std::optional<PiiAction> ParsePiiAction(absl::string_view name);

enum class PiiMode : uint8_t {
  kDefault,
  // What datatrove 0.10.1's PIIFormatter makes of a text with one replacement per type: ASCII e-mail and IPv4 alone, by
  // its own regular expressions. The other types are not looked for.
  kDatatrove,
};

struct PiiRule {
  PiiAction action = PiiAction::kReplace;
  // Empty: the type's name in capitals and angle brackets, "<EMAIL>".
  std::string replacement;
};

struct PiiSettings {
  PiiMode mode = PiiMode::kDefault;
  std::array<PiiRule, kPiiTypes> rules;  // by PiiType

  PiiRule& Of(PiiType type) { return rules[static_cast<size_t>(type)]; }
  const PiiRule& Of(PiiType type) const { return rules[static_cast<size_t>(type)]; }
  // What stands for one of this type when it is replaced.
  std::string ReplacementOf(PiiType type) const;
  bool NeedsKey() const;

  // All faults in one message.
  absl::Status Validate() const;
};

// The secret under which pseudonyms are made. Who has it can find out which pseudonym stands for a value he guesses, so
// it is read from where secrets are kept and neither printed nor stored; its memory is wiped at the end.
class PiiKey {
 public:
  // All bytes of the file but one line end at its end; at least 16.
  static absl::StatusOr<PiiKey> FromFile(const std::string& path);
  // Of an environment variable, which main reads; `source` is named in errors.
  static absl::StatusOr<PiiKey> FromBytes(absl::string_view bytes, absl::string_view source);

  PiiKey(PiiKey&&) = default;
  PiiKey& operator=(PiiKey&&) = default;
  PiiKey(const PiiKey&) = delete;
  PiiKey& operator=(const PiiKey&) = delete;
  ~PiiKey();

  absl::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  explicit PiiKey(absl::string_view bytes) : bytes_(bytes.begin(), bytes.end()) {}
  std::vector<char> bytes_;  // unlike a string it leaves nothing behind when it is moved
};

}  // namespace llmctl::data
