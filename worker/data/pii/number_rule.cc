#include "worker/data/pii/number_rule.h"

#include <algorithm>

#include "worker/data/pii/check_digits.h"

namespace llmctl::data {
namespace {

struct Mark {
  char ascii = '\0';  // none
  size_t bytes = 0;
};

// The mark, or digit, at the start of `text`.
Mark MarkAt(absl::string_view text) {
  if (text.empty()) return {};
  const char c = text[0];
  if (IsDigit(c) || c == ' ' || c == '-' || c == '.' || c == '/' || c == '(' || c == ')' || c == '+') return {c, 1};
  // No-break space, narrow no-break space; hyphen, no-break hyphen, figure dash, en dash.
  if (text.substr(0, 2) == "\xc2\xa0") return {' ', 2};
  if (text.substr(0, 3) == "\xe2\x80\xaf") return {' ', 3};
  if (text.size() >= 3 && text.substr(0, 2) == "\xe2\x80" && text[2] >= '\x90' && text[2] <= '\x93') return {'-', 3};
  return {};
}

Mark MarkBefore(absl::string_view text, size_t at) {
  for (size_t bytes = 1; bytes <= 3 && bytes <= at; ++bytes) {
    Mark mark = MarkAt(text.substr(at - bytes, bytes));
    if (mark.ascii != '\0' && mark.bytes == bytes) return mark;
  }
  return {};
}

// Runs end where three marks follow each other: what is further apart is no number together.
constexpr int kMarksMax = 3;

size_t RunBegin(const TextScan& scan, size_t at, size_t lower) {
  int marks = 0;
  size_t begin = at;
  while (at > lower) {
    Mark mark = MarkBefore(scan.text, at);
    if (mark.ascii == '\0' || at - mark.bytes < lower) break;
    at -= mark.bytes;
    marks = IsDigit(mark.ascii) ? 0 : marks + 1;
    if (marks > kMarksMax) break;
    if (IsDigit(mark.ascii) || mark.ascii == '+' || mark.ascii == '(') begin = at;
  }
  return begin;
}

size_t RunEnd(const TextScan& scan, size_t at) {
  int marks = 0;
  size_t end = at;
  while (at < scan.text.size()) {
    Mark mark = MarkAt(scan.text.substr(at));
    if (mark.ascii == '\0') break;
    at += mark.bytes;
    marks = IsDigit(mark.ascii) ? 0 : marks + 1;
    if (marks > kMarksMax) break;
    if (IsDigit(mark.ascii)) end = at;
  }
  return end;
}

NumberForm FormAt(const TextScan& scan, size_t at) {
  NumberForm out;
  out.offsets[0] = at;
  while (out.form.size() < NumberForm::kCharactersMax) {
    Mark mark = MarkAt(scan.text.substr(at));
    if (mark.ascii == '\0') break;
    at += mark.bytes;
    out.form += mark.ascii;
    out.offsets[out.form.size()] = at;
  }
  scan.Count(out.form.size());
  return out;
}

std::string DigitsOf(absl::string_view form) {
  std::string digits;
  std::copy_if(form.begin(), form.end(), std::back_inserter(digits), IsDigit);
  return digits;
}

bool IsMarkBetweenDigits(char c) { return c == '-' || c == '.' || c == '/' || c == ':' || c == ','; }

// Whether a number may begin at `at`: it is not the rest of a word, a decimal fraction, a date or a path.
bool MayBegin(const TextScan& scan, size_t at) {
  if (scan.WordBefore(at)) return false;
  const char before = scan.Before(at);
  const char second = at >= 2 ? scan.text[at - 2] : '\0';
  if (before == ',' || before == '(') return true;
  if (before == '.' || before == '/' || before == '-') {
    return !IsWordByte(second) || (before == '.' && !IsDigit(second)) || (before == '/' && scan.text[at] == '+');
  }
  if (before == ':') return !IsDigit(second);
  return before != '#' && before != '$' && before != '%' && before != '&' && before != '^' && before != '~' &&
         before != '\\' && before != '*' && before != '@';
}

// Whether a number may end at `at`.
bool MayEnd(const TextScan& scan, size_t at) {
  if (scan.WordAt(at)) return false;
  const char after = scan.At(at), second = scan.At(at + 1);
  if (after == '%' || after == '@' || after == '\\' || after == '^' || after == '*' || after == '=') return false;
  if (after == '-' && IsWordByte(second)) return false;
  if (after == '/' && IsWordByte(second)) return false;
  return !(IsMarkBetweenDigits(after) && after != ',' && IsDigit(second));
}

}  // namespace

// A window of the text, and how it is bounded.
struct NumberRule::Place {
  const TextScan& scan;
  const Pattern& dump_behind;
  NumberForm form;
  // A digit, one mark and the place: it is inside of something unless it uses other marks than that one.
  char joined = '\0';
  bool is_in_dump = false;  // of bytes in hexadecimal

  absl::string_view Text() const { return form.form; }
  // Whether the first `length` characters of the form stand for themselves.
  bool IsWhole(size_t length) const {
    const size_t end = form.EndOf(length);
    if (!MayEnd(scan, end)) return false;
    const absl::string_view number = Text().substr(0, length);
    auto uses = [&](char mark) { return number.find(mark) != absl::string_view::npos; };
    if (joined != '\0' && number[0] != '(' && number[0] != '+' && uses(joined)) return false;
    if (uses(' ') && is_in_dump) return false;
    const bool goes_on = length + 1 < Text().size() && IsDigit(Text()[length + 1]);
    return !(goes_on && Text()[length] == ' ' && uses(' ')) &&
           !(uses(' ') && dump_behind.PrefixLength(scan.WindowFrom(end, 8)).has_value());
  }
  PiiSpan Span(PiiType type, size_t length) const { return {form.offsets[0], form.EndOf(length), type}; }
  // What stands before, on the same line.
  absl::string_view Before(size_t bytes) const {
    absl::string_view window = scan.ContextBefore(form.offsets[0], bytes);
    size_t line = window.rfind('\n');
    return line == absl::string_view::npos ? window : window.substr(line + 1);
  }
};

NumberRule::NumberRule()
    : chinese_id_("(\\d{17})"),
      old_chinese_id_("(\\d{15})"),
      us_ssn_("(\\d{3}-\\d{2}-\\d{4}|\\d{3} \\d{2} \\d{4}|\\d{9})"),
      mobile_("((?:(?:\\+ ?|00)?86[ -]?)?1\\d{2}(?:\\d{8}|-\\d{4}-\\d{4}| \\d{4} \\d{4}|-\\d{8}|\\d-\\d{7}))"),
      card_("(\\d{4}(?: \\d{4}){3}(?: \\d{3})?|\\d{4}(?:-\\d{4}){3}(?:-\\d{3})?|\\d{4} \\d{6} \\d{4,5}|"
            "\\d{4}-\\d{6}-\\d{4,5}|\\d{12,19})"),
      card_word_("(?i)(?:card|visa|master|maestro|amex|credit|debit|karte|carte|tarjeta|carta|cart\xc3\xa3o|kaart|"
                 "karta|\xd0\xba\xd0\xb0\xd1\x80\xd1\x82|\xe5\x8d\xa1|\xe3\x82\xab\xe3\x83\xbc\xe3\x83\x89|\\bcc\\b|\\bpan\\b)"),
      us_ssn_word_("(?i)(?:\\bssns?\\b|social[ -]?security|\\bss ?#)"),
      dump_before_("(?i)(?:^|[^0-9a-z])[0-9a-f]{2} [0-9a-f]{2} {1,2}$"),
      dump_behind_("(?i) {1,2}<?[0-9a-f]{2}>? {1,2}<?[0-9a-f]{2}\\b"),
      is_chinese_("\\p{Han}"),
      chinese_id_word_("(?:\xe8\xba\xab\xe4\xbb\xbd|\xe8\xba\xab\xe5\x88\x86)") {}

void NumberRule::FindNumbers(TextScan& scan, size_t end) const {
  if (end <= scan.numbers_done) return;
  const size_t run_begin = RunBegin(scan, end, scan.numbers_done);
  const size_t run_end = RunEnd(scan, end);
  scan.Count(run_end - run_begin);
  scan.numbers_done = run_end;
  for (size_t at = run_begin; at < run_end;) {
    std::optional<PiiSpan> found = FindAt(scan, at, run_begin);
    if (found.has_value()) {
      scan.spans.push_back(*found);
      at = found->end;
    } else if (IsDigit(scan.text[at])) {
      while (at < run_end && IsDigit(scan.text[at])) ++at;
    } else {
      ++at;
    }
    while (at < run_end && !IsDigit(scan.text[at]) && scan.text[at] != '+' && scan.text[at] != '(') ++at;
  }
}

std::optional<PiiSpan> NumberRule::FindAt(const TextScan& scan, size_t at, size_t run_begin) const {
  if (!MayBegin(scan, at)) return std::nullopt;
  Place place{scan, dump_behind_, FormAt(scan, at)};
  if (at > run_begin) {
    const Mark mark = MarkBefore(scan.text, at);
    if (mark.ascii != '\0' && at > mark.bytes && IsDigit(scan.text[at - mark.bytes - 1])) place.joined = mark.ascii;
  }
  place.is_in_dump = dump_before_.IsIn(scan.WindowBefore(at, 8));
  if (IsDigit(scan.text[at])) {
    if (auto found = FindIdentity(place)) return found;
    if (auto found = FindCard(place)) return found;
  }
  if (auto found = FindMobile(place)) return found;
  if (auto found = FindInternational(place)) return found;
  return FindNational(place);
}

std::optional<PiiSpan> NumberRule::FindIdentity(const Place& place) const {
  if (chinese_id_.PrefixLength(place.Text()).has_value()) {
    const size_t last = place.form.EndOf(17);
    const char check = place.scan.At(last);
    if ((IsDigit(check) || check == 'X' || check == 'x') && !place.scan.WordAt(last + 1) &&
        IsChineseId(place.scan.text.substr(place.form.offsets[0], 18))) {
      return PiiSpan{place.form.offsets[0], last + 1, PiiType::kChineseId};
    }
  }
  if (old_chinese_id_.PrefixLength(place.Text()).has_value() && place.IsWhole(15) &&
      chinese_id_word_.IsIn(place.Before(48))) {
    return place.Span(PiiType::kChineseId, 15);
  }
  const size_t length = us_ssn_.PrefixLength(place.Text()).value_or(0);
  if (length == 0 || !place.IsWhole(length)) return std::nullopt;
  if (!IsUsSsn(DigitsOf(place.Text().substr(0, length)))) return std::nullopt;
  const bool is_usual = place.Text()[3] == '-';
  if (!is_usual && !us_ssn_word_.IsIn(place.Before(48))) return std::nullopt;
  return place.Span(PiiType::kUsSsn, length);
}

std::optional<PiiSpan> NumberRule::FindCard(const Place& place) const {
  const size_t length = card_.PrefixLength(place.Text()).value_or(0);
  if (length == 0 || !place.IsWhole(length)) return std::nullopt;
  const std::string digits = DigitsOf(place.Text().substr(0, length));
  if (!IsCardNumber(digits)) return std::nullopt;
  // One in ten numbers has the right check digit: those of lengths that hardly any card has need a word for it.
  const bool is_usual = digits.size() == 16 || digits.size() == 15 || length > digits.size();
  if (!is_usual && !card_word_.IsIn(place.Before(64))) return std::nullopt;
  return place.Span(PiiType::kCard, length);
}

std::optional<PiiSpan> NumberRule::FindMobile(const Place& place) const {
  const size_t length = mobile_.PrefixLength(place.Text()).value_or(0);
  if (length == 0 || !place.IsWhole(length)) return std::nullopt;
  const std::string digits = DigitsOf(place.Text().substr(0, length));
  if (!IsChineseMobile(absl::string_view(digits).substr(digits.size() - 11))) return std::nullopt;
  // Sizes and times have eleven digits too.
  if (length == 11 && !plan_.IsAnnounced(place.Before(48)) && !is_chinese_.IsIn(place.Before(48)) &&
      !is_chinese_.IsIn(place.scan.ContextFrom(place.form.EndOf(length), 24))) {
    return std::nullopt;
  }
  return place.Span(PiiType::kChineseMobile, length);
}

bool NumberRule::HasExtension(const Place& place, size_t length) const {
  return plan_.ExtensionLength(place.scan.WindowFrom(place.form.EndOf(length), 16)) > 0;
}

// "+49 30 ...", "0049 30 ...", the longest that the country's plan allows.
std::optional<PiiSpan> NumberRule::FindInternational(const Place& place) const {
  const absl::string_view form = place.Text();
  const bool has_plus = form[0] == '+' || form.substr(0, 2) == "(+";
  size_t at = has_plus ? form.find('+') + 1 : form.substr(0, 2) == "00" ? 2 : 0;
  if (at == 0 || (!has_plus && place.joined != '\0')) return std::nullopt;
  std::string digits;
  size_t length = 0, groups = 0;
  while (at < form.size()) {
    const size_t group = form.find_first_of("0123456789", at);
    if (group == absl::string_view::npos || group - at > kMarksMax) break;
    if (form.substr(at, group - at).find('+') != absl::string_view::npos) break;
    const size_t end = std::min(form.find_first_not_of("0123456789", group), form.size());
    // "(0)" and "(020)": behind a country's code the trunk's 0 is not dialled.
    const bool has_trunk = form[group] == '0' && form[group - 1] == '(' && groups > 0;
    const bool is_trunk = has_trunk && end == group + 1;
    digits.append(form.data() + group + has_trunk, end - group - has_trunk);
    ++groups;
    at = end;
    if (digits.size() > 15) break;
    if (is_trunk || !IsInternationalNumber(digits)) continue;
    if (MayEnd(place.scan, place.form.EndOf(end)) || HasExtension(place, end)) length = end;
  }
  if (length == 0 || (!has_plus && !place.IsWhole(length))) return std::nullopt;
  const bool is_doubtful = !has_plus && (groups < 2 || form.substr(0, length).find('.') != absl::string_view::npos);
  if (is_doubtful && !plan_.IsAnnounced(place.Before(48))) return std::nullopt;
  PiiSpan span = place.Span(PiiType::kPhone, length);
  span.end += plan_.ExtensionLength(place.scan.WindowFrom(span.end, 16));
  return span;
}

std::optional<PiiSpan> NumberRule::FindNational(const Place& place) const {
  size_t length = plan_.StrongLength(place.Text());
  auto is_whole = [&] { return place.IsWhole(length) || HasExtension(place, length); };
  if (length > 0 && (!is_whole() || plan_.IsDisclaimed(place.Before(24)))) length = 0;
  if (length == 0) {
    length = plan_.WeakLength(place.Text());
    if (length == 0 || place.joined != '\0' || !is_whole()) return std::nullopt;
    if (!plan_.IsAnnounced(place.Before(48)) || plan_.IsDisclaimed(place.Before(24))) return std::nullopt;
  }
  PiiSpan span = place.Span(PiiType::kPhone, length);
  span.end += plan_.ExtensionLength(place.scan.WindowFrom(span.end, 16));
  return span;
}

}  // namespace llmctl::data
