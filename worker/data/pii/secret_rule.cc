#include "worker/data/pii/secret_rule.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace llmctl::data {
namespace {

// The form of a key as its issuer documents it or secret scanners know it. A prefix is of fixed length.
struct KeyKind {
  absl::string_view prefix;
  size_t prefix_bytes;
  absl::string_view body;
};
constexpr KeyKind kKeyKinds[] = {
    {"A(?:KIA|SIA|BIA|CCA)", 4, "[A-Z0-9]{16}"},                                // AWS access key id
    {"gh[pousr]_", 4, "[A-Za-z0-9]{36,255}"},                                   // GitHub
    {"github_pat_", 11, "[A-Za-z0-9_]{60,255}"},                                // GitHub, fine-grained
    {"gl(?:pat|rt|ft|dt)-", 0, "[A-Za-z0-9_-]{20,255}"},                        // GitLab
    {"xox[abeoprs]-", 5, "[A-Za-z0-9-]{10,255}"},                               // Slack
    {"xapp-", 5, "[0-9]-[A-Za-z0-9-]{10,255}"},                                 // Slack
    {"hooks\\.slack\\.com/services/", 25, "T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{20,}"},
    {"AIza", 4, "[A-Za-z0-9_-]{35}"},                                           // Google
    {"GOCSPX-", 7, "[A-Za-z0-9_-]{28}"},                                        // Google OAuth
    {"ya29\\.", 5, "[A-Za-z0-9_-]{20,}"},                                       // Google OAuth
    {"[sr]k_live_", 8, "[A-Za-z0-9]{16,255}"},                                  // Stripe
    {"[sr]k_test_", 8, "[A-Za-z0-9]{16,255}"},                                  // Stripe
    {"whsec_", 6, "[A-Za-z0-9]{24,255}"},                                       // Stripe
    {"sk-", 3, "(?:proj-|svcacct-|admin-|ant-|or-v1-)[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,}"},  // OpenAI and alike
    {"hf_", 3, "[A-Za-z0-9]{30,64}"},                                           // Hugging Face
    {"npm_", 4, "[A-Za-z0-9]{36}"},                                             // npm
    {"pypi-", 5, "[A-Za-z0-9_-]{32,}"},                                         // PyPI
    {"\\beyJ", 3, "[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}"},  // JSON web token
    {"\\bSG\\.", 3, "[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{16,64}"},             // SendGrid
    {"do[opr]_v1_", 7, "[a-f0-9]{64}"},                                         // DigitalOcean
    {"shp(?:at|ca|pa|ss)_", 6, "[a-fA-F0-9]{32}"},                              // Shopify
    {"dckr_pat_", 9, "[A-Za-z0-9_-]{27}"},                                      // Docker
    {"\\bSK[0-9a-f]{2}", 4, "[0-9a-f]{30}"},                                    // Twilio
    {"\\bkey-", 4, "[0-9a-f]{32}"},                                             // Mailgun
    {"[0-9]:AA", 4, "[A-Za-z0-9_-]{32,34}"},                                    // Telegram
};

bool IsKeyByte(char c) { return IsWordByte(c) || c == '-'; }

// "xxxx..." and "your-key-here" stand for keys, and "AKIA...EXAMPLE" is the documentation's; keys look random.
bool LooksRandom(absl::string_view key) {
  std::bitset<256> seen;
  int digits = 0, capitals = 0, smalls = 0;
  for (char c : key) {
    seen.set(static_cast<uint8_t>(c));
    digits += IsDigit(c);
    capitals += c >= 'A' && c <= 'Z';
    smalls += c >= 'a' && c <= 'z';
  }
  const bool is_mixed = digits >= 1 || (capitals >= 4 && smalls >= 4) || capitals >= 16;
  return seen.count() >= 8 && is_mixed && !absl::StrContains(key, "EXAMPLE");
}

bool IsBase64(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/' || c == '='; }

}  // namespace

SecretRule::SecretRule()
    : named_value_("^[\"']?\\s{0,3}(?:=>|:=|=|:)\\s{0,3}[\"']?([A-Za-z0-9/+_.-]{20,100}={0,2})"
                   "(?:[^A-Za-z0-9/+_.=(\\[-]|$)"),
      pem_end_("^-----END [A-Z0-9 ]{0,40}KEY(?: BLOCK)?-----") {
  for (const KeyKind& kind : kKeyKinds) {
    prefixes_.emplace_back(kind.prefix);
    bodies_.push_back(std::make_unique<Pattern>(kind.body));
  }
}

void SecretRule::FindKey(const TextScan& scan, size_t kind, size_t end) const {
  // GitLab's prefixes are of two lengths; where its hyphen is tells which.
  size_t prefix_bytes = kKeyKinds[kind].prefix_bytes;
  if (prefix_bytes == 0) prefix_bytes = end >= 6 && scan.text[end - 4] == 'p' ? 6 : 5;
  if (kKeyKinds[kind].prefix == "[0-9]:AA") {
    size_t digits = end - 3;
    while (digits > 0 && end - digits < 16 && IsDigit(scan.text[digits - 1])) --digits;
    if (end - 3 - digits < 8) return;
    prefix_bytes = end - digits;
  }
  const size_t begin = end - prefix_bytes;
  // A run of bytes of keys is looked at once, from where it begins: work stays linear.
  if (begin > 0 && IsKeyByte(scan.text[begin - 1])) return;
  const size_t body = bodies_[kind]->PrefixLength(scan.text.substr(end)).value_or(0);
  scan.Count(prefix_bytes + body);
  if (body == 0) return;
  const size_t key_end = end + body;
  if (IsKeyByte(scan.At(key_end)) || !LooksRandom(scan.text.substr(begin, key_end - begin))) return;
  scan.Add(PiiType::kApiKey, begin, key_end);
}

void SecretRule::FindNamedKey(const TextScan& scan, size_t end) const {
  auto groups = named_value_.Find<1>(scan.WindowFrom(end, 128));
  if (!groups.has_value() || !LooksRandom((*groups)[1])) return;
  const absl::string_view value = (*groups)[1];
  // A path, a call or a word of words is no key.
  if (std::count_if(value.begin(), value.end(), IsDigit) < 2 || std::count(value.begin(), value.end(), '/') > 3) return;
  if (std::count(value.begin(), value.end(), '.') > 2) return;
  const size_t begin = value.data() - scan.text.data();
  scan.Add(PiiType::kApiKey, begin, begin + value.size());
}

void SecretRule::FindPrivateKey(TextScan& scan, size_t end) const {
  constexpr size_t kBeginBytesMax = 80;
  constexpr size_t kBodyBytesMin = 40;
  if (end <= scan.private_keys_done) return;
  const absl::string_view before = scan.text.substr(0, end);
  const size_t begin = before.rfind("-----BEGIN", end - 5);
  if (begin == absl::string_view::npos || end - begin > kBeginBytesMax) return;
  // The key ends with its mark, or where its letters do; another key may begin before.
  const size_t mark = std::min(scan.text.find("-----", end), scan.text.size());
  const size_t body_end = std::min(scan.text.substr(0, mark).find('<', end), mark);
  const size_t letters = std::count_if(scan.text.begin() + end, scan.text.begin() + body_end, IsBase64);
  scan.Count(body_end - begin);
  scan.private_keys_done = body_end;
  if (letters < kBodyBytesMin) return;
  if (std::optional<size_t> mark_bytes = pem_end_.PrefixLength(scan.text.substr(body_end))) {
    scan.Add(PiiType::kPrivateKey, begin, body_end + *mark_bytes);
    return;
  }
  size_t at = end;
  auto is_body = [](char c) { return IsBase64(c) || absl::ascii_isspace(static_cast<unsigned char>(c)); };
  while (at < body_end && is_body(scan.text[at])) ++at;
  while (at > end && !IsBase64(scan.text[at - 1])) --at;
  if (at - end >= kBodyBytesMin) scan.Add(PiiType::kPrivateKey, begin, at);
}

}  // namespace llmctl::data
