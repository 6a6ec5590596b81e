#include "tests/fuzz/pii_targets.h"

#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "worker/data/normalize/utf8_repair.h"
#include "worker/data/pii/pii_cleaner.h"
#include "worker/data/text/utf8.h"

namespace llmctl::fuzz {
namespace {

// Texts that arrive at this stage are valid.
std::string ValidText(absl::string_view bytes) {
  std::string text(bytes);
  data::ReplaceInvalidUtf8(text);
  return text;
}

data::PiiRules* MakeRules(data::PiiSettings settings) {
  absl::StatusOr<data::PiiKey> key = data::PiiKey::FromBytes("sixteen bytes and a few", "the target");
  absl::StatusOr<std::unique_ptr<data::PiiRules>> rules = data::PiiRules::Create(std::move(settings), *std::move(key));
  CHECK(rules.ok()) << rules.status().message();
  return rules->release();
}

void CheckSpans(absl::string_view text, const std::vector<data::PiiSpan>& spans) {
  size_t done = 0;
  for (const data::PiiSpan& span : spans) {
    CHECK(span.begin >= done && span.begin < span.end && span.end <= text.size()) << "a span out of order or bounds";
    CHECK(!data::IsContinuation(text[span.begin])) << "a span begins inside of a character";
    CHECK(span.end == text.size() || !data::IsContinuation(text[span.end])) << "a span ends inside of a character";
    done = span.end;
  }
}

// Replacing leaves nothing to replace, and either way valid text.
void RunPii(absl::string_view bytes) {
  static data::PiiCleaner* const replacing = new data::PiiCleaner(*MakeRules({}));
  const std::string input = ValidText(bytes);
  CheckSpans(input, replacing->Find(input));
  data::PiiCounters counters;
  std::string text = input;
  CHECK(replacing->Apply(text, counters).keep);
  CHECK(data::FindInvalidUtf8(text) == std::string::npos) << "what was valid is so no more";
  const std::string once = text;
  replacing->Apply(text, counters);
  CHECK_EQ(text, once);
}

void RunPseudonyms(absl::string_view bytes) {
  static data::PiiCleaner* const naming = [] {
    data::PiiSettings settings;
    for (data::PiiRule& rule : settings.rules) rule.action = data::PiiAction::kPseudonym;
    return new data::PiiCleaner(*MakeRules(settings));
  }();
  data::PiiCounters counters;
  std::string text = ValidText(bytes);
  naming->Apply(text, counters);
  CHECK(data::FindInvalidUtf8(text) == std::string::npos) << "what was valid is so no more";
}

void RunDatatrovePii(absl::string_view bytes) {
  static data::PiiCleaner* const cleaner = [] {
    data::PiiSettings settings;
    settings.mode = data::PiiMode::kDatatrove;
    return new data::PiiCleaner(*MakeRules(settings));
  }();
  const std::string text = ValidText(bytes);
  CheckSpans(text, cleaner->Find(text));
}

std::vector<std::string> Seeds() {
  return {"joe@example.org <ann.b@m\xc3\xbcller.de> joe (at) example [dot] org, joe at example dot com a@b.com@c.org",
          "ping 8.8.8.8 2001:4860:4860::8888 tel. 612 345 678, +44 (0)20 7946 0958 x12 (212) 555-0123 01 23 45 67 89",
          "4111 1111 1111 1111 DE89 3704 0044 0532 0130 00 SSN 536-90-4399 11010519491231002X "
          "\xe7\x94\xb5\xe8\xaf\x9d" "13812345678 +86\xc2\xa0" "138-1234-5678",
          "https://joe:s3cret@example.org/ AKIA" "I44QH8DHBZ3K7Q2M ghp_" "16C7e42F292c6912E7710c838347Ae178B4a "
          "api_key=\"9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c\"",
          "-----BEGIN EC PRIVATE" " KEY-----\nMIIEowIBAAKCAQEAwJ8k3+Yq\nB2n5dD1vS7Qm9f/0XaZp1234\n-----END EC PRIVATE"
          " KEY-----\n"};
}

}  // namespace

std::vector<Target> PiiTargets() {
  return {{"pii", RunPii, Seeds()},
          {"pii_pseudonyms", RunPseudonyms, Seeds()},
          {"datatrove_pii", RunDatatrovePii, Seeds()}};
}

}  // namespace llmctl::fuzz
