#include "worker/data/pii/pii_cleaner.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "worker/data/pii/candidate_scanner.h"
#include "worker/data/pii/datatrove_pii.h"
#include "worker/data/pii/email_rule.h"
#include "worker/data/pii/iban_rule.h"
#include "worker/data/pii/ip_rule.h"
#include "worker/data/pii/number_rule.h"
#include "worker/data/pii/pseudonym.h"
#include "worker/data/pii/secret_rule.h"
#include "worker/data/pii/text_scan.h"

namespace llmctl::data {
namespace {

// What the rule at a candidate is called with: the byte behind it.
using Rule = std::function<void(TextScan&, size_t end)>;

// Digits and what stands between the groups of a number, the space and the dash of other scripts too (MarkAt).
constexpr absl::string_view kSevenDigits =
    "[0-9](?:(?:[ .()/-]|\\xc2\\xa0|\\xe2\\x80[\\x90-\\x93\\xaf]){0,3}[0-9]){6}";

void Cut(std::vector<PiiSpan>& spans) {
  std::sort(spans.begin(), spans.end(), [](const PiiSpan& a, const PiiSpan& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.type != b.type ? a.type < b.type : a.end > b.end;
  });
  size_t kept = 0;
  for (const PiiSpan& span : spans) {
    if (kept > 0 && span.begin < spans[kept - 1].end) {
      if (span.type < spans[kept - 1].type) spans[kept - 1] = span;
    } else {
      spans[kept++] = span;
    }
  }
  spans.resize(kept);
}

}  // namespace

struct PiiRules::Parts {
  PiiSettings settings;
  std::optional<PiiKey> key;
  std::array<std::string, kPiiTypes> replacements;
  EmailRule email;
  IpRule ip;
  NumberRule number;
  SecretRule secret;
  DatatrovePii datatrove;
  std::vector<Rule> rules;  // by pattern
  std::optional<CandidateScanner> scanner;

  bool IsOn(PiiType type) const { return settings.Of(type).action != PiiAction::kOff; }
  absl::Status Compile();

 private:
  void AddPattern(std::string expression, Rule rule, bool ignore_case = false);
  void AddAddresses();
  void AddSecrets();
  std::vector<CandidatePattern> patterns_;
};

void PiiRules::Parts::AddPattern(std::string expression, Rule rule, bool ignore_case) {
  patterns_.push_back({std::move(expression), ignore_case});
  rules.push_back(std::move(rule));
}

void PiiRules::Parts::AddAddresses() {
  if (IsOn(PiiType::kEmail) || IsOn(PiiType::kUrlCredentials)) {
    AddPattern("@", [this](TextScan& scan, size_t end) {
      FindUrlCredentials(scan, end - 1);
      email.FindAddress(scan, end - 1);
    });
  }
  if (IsOn(PiiType::kEmail)) {
    AddPattern("[(\\[{]\\s?(?:at|\\xc3\\xa4t|\\xc3\\x84t|arobase|arroba|chiocciola|@)\\s?[)\\]}]",
               [this](TextScan& scan, size_t end) { email.FindBracketed(scan, end); }, /*ignore_case=*/true);
    AddPattern("\\sdot\\s", [this](TextScan& scan, size_t end) { email.FindSpelled(scan, end); }, /*ignore_case=*/true);
  }
  if (IsOn(PiiType::kIpv4)) {
    AddPattern("[0-9]\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]",
               [this](TextScan& scan, size_t end) { ip.FindIpv4(scan, end); });
  }
  if (IsOn(PiiType::kIpv6)) {
    AddPattern("[23][0-9a-fA-F]{3}:[0-9a-fA-F:]", [this](TextScan& scan, size_t end) { ip.FindIpv6(scan, end); });
  }
}

void PiiRules::Parts::AddSecrets() {
  if (IsOn(PiiType::kApiKey)) {
    for (size_t kind = 0; kind < secret.prefixes().size(); ++kind) {
      AddPattern(secret.prefixes()[kind],
                 [this, kind](TextScan& scan, size_t end) { secret.FindKey(scan, kind, end); });
    }
    AddPattern("(?:api|access|auth|secret|private|account)[_-]?(?:access[_-]?)?(?:key|token|secret)|client[_-]?secret",
               [this](TextScan& scan, size_t end) { secret.FindNamedKey(scan, end); }, /*ignore_case=*/true);
  }
  if (IsOn(PiiType::kPrivateKey)) {
    AddPattern("-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
               [this](TextScan& scan, size_t end) { secret.FindPrivateKey(scan, end); });
  }
}

absl::Status PiiRules::Parts::Compile() {
  AddAddresses();
  AddSecrets();
  if (IsOn(PiiType::kIban)) {
    AddPattern("[A-Z]{2}[0-9]{2}[A-Z0-9]{4}", [](TextScan& scan, size_t end) { FindIban(scan, end - 8); });
    AddPattern("[A-Z]{2}[0-9]{2}[ -][A-Z0-9]{4}", [](TextScan& scan, size_t end) { FindIban(scan, end - 9); });
    AddPattern("[A-Z]{2}[0-9]{2}\\xc2\\xa0[A-Z0-9]{4}", [](TextScan& scan, size_t end) { FindIban(scan, end - 10); });
  }
  if (IsOn(PiiType::kPhone) || IsOn(PiiType::kCard) || IsOn(PiiType::kUsSsn) || IsOn(PiiType::kChineseId) ||
      IsOn(PiiType::kChineseMobile)) {
    AddPattern(std::string(kSevenDigits), [this](TextScan& scan, size_t end) { number.FindNumbers(scan, end); });
  }
  absl::StatusOr<CandidateScanner> compiled = CandidateScanner::Compile(patterns_);
  if (!compiled.ok()) return compiled.status();
  scanner.emplace(*std::move(compiled));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PiiRules>> PiiRules::Create(PiiSettings settings, std::optional<PiiKey> key) {
  if (absl::Status valid = settings.Validate(); !valid.ok()) return valid;
  if (settings.NeedsKey() && !key.has_value()) {
    return absl::InvalidArgumentError(
        "pii: an action is pseudonym, but there is no key: give one by file or environment");
  }
  auto parts = std::make_unique<Parts>();
  for (int i = 0; i < kPiiTypes; ++i) parts->replacements[i] = settings.ReplacementOf(static_cast<PiiType>(i));
  parts->settings = std::move(settings);
  parts->key = std::move(key);
  if (absl::Status compiled = parts->Compile(); !compiled.ok()) return compiled;
  return std::unique_ptr<PiiRules>(new PiiRules(std::move(parts)));
}

PiiRules::PiiRules(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PiiRules::~PiiRules() = default;
const PiiSettings& PiiRules::settings() const { return parts_->settings; }

struct PiiCleaner::Scratch {
  CandidateScratch candidates;
  std::vector<PiiSpan> spans;
  std::vector<PiiSpan> round;
  std::string covered;
  std::string out;
  uint64_t work = 0;
};

PiiCleaner::PiiCleaner(const PiiRules& rules) : parts_(*rules.parts_), scratch_(std::make_unique<Scratch>()) {
  parts_.scanner->Prepare(scratch_->candidates);
}
PiiCleaner::~PiiCleaner() = default;
uint64_t PiiCleaner::work() const { return scratch_->work; }

void PiiCleaner::FindOnce(absl::string_view text) {
  Scratch& scratch = *scratch_;
  scratch.round.clear();
  TextScan scan{text, scratch.round, scratch.work};
  scan.Count(text.size());
  parts_.scanner->Scan(text, scratch.candidates, [&](size_t pattern, size_t end) { parts_.rules[pattern](scan, end); });
  std::erase_if(scratch.round, [&](const PiiSpan& span) { return !parts_.IsOn(span.type); });
  Cut(scratch.round);
}

const std::vector<PiiSpan>& PiiCleaner::Find(absl::string_view text) {
  Scratch& scratch = *scratch_;
  scratch.work = 0;
  scratch.spans.clear();
  if (parts_.settings.mode == PiiMode::kDatatrove) {
    TextScan scan{text, scratch.spans, scratch.work};
    if (parts_.IsOn(PiiType::kEmail)) parts_.datatrove.FindEmails(scan);
    if (parts_.IsOn(PiiType::kIpv4)) parts_.datatrove.FindIpv4(scan);
    Cut(scratch.spans);
    return scratch.spans;
  }
  FindOnce(text);
  for (int round = 1; !scratch.round.empty(); ++round) {
    scratch.spans.insert(scratch.spans.end(), scratch.round.begin(), scratch.round.end());
    if (round == kPiiRoundsMax) break;
    if (round == 1) scratch.covered.assign(text.data(), text.size());
    // What stands for something found has brackets around it, as replacements have.
    for (const PiiSpan& span : scratch.round) {
      std::fill(scratch.covered.begin() + span.begin, scratch.covered.begin() + span.end, '>');
      scratch.covered[span.begin] = '<';
    }
    FindOnce(scratch.covered);
  }
  std::sort(scratch.spans.begin(), scratch.spans.end(),
            [](const PiiSpan& a, const PiiSpan& b) { return a.begin < b.begin; });
  return scratch.spans;
}

PiiOutcome PiiCleaner::Apply(std::string& text, PiiCounters& counters) {
  ++counters.documents;
  if (parts_.settings.mode == PiiMode::kDatatrove) return ApplyDatatrove(text, counters);
  Find(text);
  std::array<int64_t, kPiiTypes> found = {};
  for (const PiiSpan& span : scratch_->spans) ++found[static_cast<size_t>(span.type)];
  for (int i = 0; i < kPiiTypes; ++i) counters.found[i] += found[i];
  for (int i = 0; i < kPiiTypes; ++i) {
    const PiiType type = static_cast<PiiType>(i);
    if (found[i] == 0 || parts_.settings.Of(type).action != PiiAction::kDrop) continue;
    ++counters.documents_dropped;
    return {.keep = false, .reason = absl::StrCat("pii_", PiiTypeName(type)), .value = static_cast<double>(found[i])};
  }
  PiiOutcome outcome;
  std::string& out = scratch_->out;
  out.clear();
  size_t done = 0;
  for (const PiiSpan& span : scratch_->spans) {
    const size_t type = static_cast<size_t>(span.type);
    const PiiAction action = parts_.settings.Of(span.type).action;
    if (action == PiiAction::kKeep) continue;
    absl::StrAppend(&out, absl::string_view(text).substr(done, span.begin - done));
    const absl::string_view original = absl::string_view(text).substr(span.begin, span.end - span.begin);
    absl::StrAppend(&out, action == PiiAction::kPseudonym ? Pseudonym(*parts_.key, span.type, original)
                                                          : parts_.replacements[type]);
    done = span.end;
    ++counters.changed[type];
    ++outcome.changed;
  }
  if (outcome.changed == 0) return outcome;
  absl::StrAppend(&out, absl::string_view(text).substr(done));
  text.swap(out);
  ++counters.documents_changed;
  return outcome;
}

// It looks for addresses in a text whose e-mail is replaced already.
PiiOutcome PiiCleaner::ApplyDatatrove(std::string& text, PiiCounters& counters) {
  Scratch& scratch = *scratch_;
  PiiOutcome outcome;
  scratch.work = 0;
  auto replace = [&](PiiType type) {
    scratch.out.clear();
    size_t done = 0;
    for (const PiiSpan& span : scratch.spans) {
      absl::StrAppend(&scratch.out, absl::string_view(text).substr(done, span.begin - done),
                      parts_.replacements[static_cast<size_t>(type)]);
      done = span.end;
    }
    const int64_t count = static_cast<int64_t>(scratch.spans.size());
    counters.found[static_cast<size_t>(type)] += count;
    counters.changed[static_cast<size_t>(type)] += count;
    outcome.changed += count;
    if (count == 0) return;
    absl::StrAppend(&scratch.out, absl::string_view(text).substr(done));
    text.swap(scratch.out);
  };
  for (PiiType type : {PiiType::kEmail, PiiType::kIpv4}) {
    if (!parts_.IsOn(type)) continue;
    scratch.spans.clear();
    TextScan scan{text, scratch.spans, scratch.work};
    if (type == PiiType::kEmail) {
      parts_.datatrove.FindEmails(scan);
    } else {
      parts_.datatrove.FindIpv4(scan);
    }
    replace(type);
  }
  counters.documents_changed += outcome.changed > 0;
  return outcome;
}

void PiiCounters::Add(const PiiCounters& other) {
  for (int i = 0; i < kPiiTypes; ++i) {
    found[i] += other.found[i];
    changed[i] += other.changed[i];
  }
  documents += other.documents;
  documents_changed += other.documents_changed;
  documents_dropped += other.documents_dropped;
}

}  // namespace llmctl::data
