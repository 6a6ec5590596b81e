#include "worker/data/pii/pii_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <openssl/crypto.h>
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/file.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kTypeNames[kPiiTypes] = {
    "private_key", "url_credentials", "api_key",   "email", "iban", "cn_id",
    "card",        "us_ssn",          "cn_mobile", "ipv6",  "ipv4", "phone"};
constexpr absl::string_view kActionNames[] = {"replace", "pseudonym", "drop", "keep", "off"};
constexpr size_t kKeyBytesMin = 16;
constexpr size_t kReplacementBytesMax = 256;

template <typename Value, size_t n>
std::optional<Value> Parse(const absl::string_view (&names)[n], absl::string_view name) {
  auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Value>(found - std::begin(names));
}

}  // namespace

absl::string_view PiiTypeName(PiiType type) { return kTypeNames[static_cast<size_t>(type)]; }
std::optional<PiiType> ParsePiiType(absl::string_view name) { return Parse<PiiType>(kTypeNames, name); }
absl::string_view PiiActionName(PiiAction action) { return kActionNames[static_cast<size_t>(action)]; }
std::optional<PiiAction> ParsePiiAction(absl::string_view name) { return Parse<PiiAction>(kActionNames, name); }

std::string PiiSettings::ReplacementOf(PiiType type) const {
  const PiiRule& rule = Of(type);
  if (!rule.replacement.empty()) return rule.replacement;
  return absl::StrCat("<", absl::AsciiStrToUpper(PiiTypeName(type)), ">");
}

bool PiiSettings::NeedsKey() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const PiiRule& rule) { return rule.action == PiiAction::kPseudonym; });
}

absl::Status PiiSettings::Validate() const {
  std::vector<std::string> faults;
  bool is_all_off = true;
  for (int i = 0; i < kPiiTypes; ++i) {
    const PiiType type = static_cast<PiiType>(i);
    const PiiRule& rule = rules[i];
    if (rule.action != PiiAction::kOff) is_all_off = false;
    if (!rule.replacement.empty() && rule.action != PiiAction::kReplace) {
      faults.push_back(absl::StrCat(PiiTypeName(type), ".replacement is given, but the action is ",
                                    PiiActionName(rule.action)));
    }
    if (rule.replacement.size() > kReplacementBytesMax) {
      faults.push_back(absl::StrCat(PiiTypeName(type), ".replacement has ", rule.replacement.size(),
                                    " bytes, expected at most ", kReplacementBytesMax));
    }
    const bool is_datatrove_type = type == PiiType::kEmail || type == PiiType::kIpv4;
    if (mode == PiiMode::kDatatrove && is_datatrove_type && rule.action != PiiAction::kReplace &&
        rule.action != PiiAction::kOff) {
      faults.push_back(absl::StrCat(PiiTypeName(type), ".action is ", PiiActionName(rule.action),
                                    ", expected replace or off with parity: datatrove"));
    }
  }
  if (is_all_off) faults.push_back("every type is off");
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("pii: ", absl::StrJoin(faults, "; ")));
}

absl::StatusOr<PiiKey> PiiKey::FromBytes(absl::string_view bytes, absl::string_view source) {
  if (bytes.size() >= kKeyBytesMin) return PiiKey(bytes);
  return absl::InvalidArgumentError(absl::StrCat("read the key of pseudonyms from ", source, ": it has ", bytes.size(),
                                                 " bytes, expected ", kKeyBytesMin, " or more"));
}

absl::StatusOr<PiiKey> PiiKey::FromFile(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  if (!bytes->empty() && bytes->back() == '\n') bytes->pop_back();
  absl::StatusOr<PiiKey> key = FromBytes(*bytes, path);
  OPENSSL_cleanse(bytes->data(), bytes->size());
  return key;
}

PiiKey::~PiiKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

}  // namespace llmctl::data
