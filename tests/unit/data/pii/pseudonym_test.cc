#include "worker/data/pii/pseudonym.h"

#include <fstream>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/match.h"

#include "worker/data/pii/check_digits.h"
#include "worker/data/pii/pii_cleaner.h"

namespace llmctl::data {
namespace {

PiiKey Key(absl::string_view bytes = "one key of sixteen bytes or more") {
  return *PiiKey::FromBytes(bytes, "the test");
}

TEST(Pseudonym, IsOneForOneUnderAKey) {
  const PiiKey key = Key(), other = Key("another key of sixteen bytes");
  const std::string pseudonym = Pseudonym(key, PiiType::kEmail, "joe@example.org");

  EXPECT_EQ(Pseudonym(key, PiiType::kEmail, "Joe@Example.org"), pseudonym);
  EXPECT_NE(Pseudonym(key, PiiType::kEmail, "ann@example.org"), pseudonym);
  EXPECT_NE(Pseudonym(other, PiiType::kEmail, "joe@example.org"), pseudonym);
  // Of one number in two spellings each has its marks, and the same digits.
  EXPECT_EQ(Pseudonym(key, PiiType::kCard, "4111-1111-1111-1111").substr(0, 7), "4111-11");
  std::string dashed = Pseudonym(key, PiiType::kCard, "4111-1111-1111-1111");
  std::erase(dashed, '-');
  EXPECT_EQ(Pseudonym(key, PiiType::kCard, "4111111111111111"), dashed);
}

TEST(Pseudonym, HasTheFormOfItsType) {
  const PiiKey key = Key();

  EXPECT_TRUE(IsCardNumber(Pseudonym(key, PiiType::kCard, "378282246310005")));
  const std::string iban = Pseudonym(key, PiiType::kIban, "GB29NWBK60161331926819");
  EXPECT_EQ(IbanRemainder(iban), 1) << iban;
  EXPECT_THAT(iban, testing::MatchesRegex("GB[0-9]+[A-Z]+[0-9]+"));
  EXPECT_TRUE(IsChineseId(Pseudonym(key, PiiType::kChineseId, "11010519491231002X")));
  EXPECT_TRUE(IsChineseMobile(Pseudonym(key, PiiType::kChineseMobile, "13812345678")));
  EXPECT_THAT(Pseudonym(key, PiiType::kUsSsn, "536-90-4399"), testing::MatchesRegex("9[0-9]+-[0-4][0-9]-[0-9]+"));
  EXPECT_THAT(Pseudonym(key, PiiType::kPhone, "+44 20 7946 0958"), testing::MatchesRegex("\\+44 20 79[0-9]+ [0-9]+"));
  EXPECT_THAT(Pseudonym(key, PiiType::kIpv4, "8.8.8.8"), testing::MatchesRegex("2[45][0-9](\\.[0-9]+)+"));
  EXPECT_THAT(Pseudonym(key, PiiType::kIpv6, "2606::1"), testing::StartsWith("2001:db8:"));
  EXPECT_THAT(Pseudonym(key, PiiType::kUrlCredentials, "joe:s3cret"), testing::MatchesRegex("[a-z]+:[a-z]+"));
  EXPECT_THAT(Pseudonym(key, PiiType::kApiKey, "ghp_" "16C7e42F292c6912E7710c838347Ae178B4a"),
              testing::MatchesRegex("ghp_[0-9][0-9][A-Z][0-9][a-z].*"));
}

// What is made up is found again where it stands, but for the types whose pseudonyms are of ranges that nobody has.
TEST(Pseudonym, IsFoundAgainAsItsType) {
  PiiSettings settings;
  for (PiiRule& rule : settings.rules) rule.action = PiiAction::kPseudonym;
  absl::StatusOr<std::unique_ptr<PiiRules>> rules = PiiRules::Create(settings, Key());
  ASSERT_TRUE(rules.ok()) << rules.status();
  PiiCleaner cleaner(**rules);
  PiiCounters counters;
  const std::string before =
      "joe@example.com; 4111 1111 1111 1111; DE89 3704 0044 0532 0130 00; 11010519491231002X; +86 138 1234 5678; "
      "+44 20 7946 0958; (212) 555-0123; token ghp_" "16C7e42F292c6912E7710c838347Ae178B4a; https://joe:s3cret@h.org/";
  std::string text = before;

  cleaner.Apply(text, counters);

  std::multiset<PiiType> types, types_before;
  for (const PiiSpan& span : cleaner.Find(text)) types.insert(span.type);
  for (const PiiSpan& span : cleaner.Find(before)) types_before.insert(span.type);
  EXPECT_EQ(types, types_before) << text;
  EXPECT_EQ(types.size(), 9u);
  EXPECT_FALSE(absl::StrContains(text, "1111 1111 1111"));
  EXPECT_EQ(counters.documents_changed, 1);
}

TEST(PiiSettings, SayAllTheirFaultsAtOnce) {
  PiiSettings settings;
  settings.mode = PiiMode::kDatatrove;
  settings.Of(PiiType::kEmail).action = PiiAction::kDrop;
  settings.Of(PiiType::kCard).action = PiiAction::kKeep;
  settings.Of(PiiType::kCard).replacement = "X";

  EXPECT_THAT(settings.Validate().message(),
              testing::AllOf(testing::HasSubstr("card.replacement is given, but the action is keep"),
                             testing::HasSubstr("email.action is drop")));
  EXPECT_TRUE(PiiSettings().Validate().ok());
  for (PiiRule& rule : settings.rules) rule = {PiiAction::kOff, ""};
  EXPECT_THAT(settings.Validate().message(), testing::HasSubstr("every type is off"));
}

TEST(PiiKey, IsLongAndNeededForPseudonyms) {
  EXPECT_THAT(PiiKey::FromBytes("short", "KEY").status().message(), testing::HasSubstr("KEY: it has 5 bytes"));
  EXPECT_FALSE(PiiKey::FromFile("/nonexistent/key").ok());
  PiiSettings settings;
  settings.Of(PiiType::kPhone).action = PiiAction::kPseudonym;
  EXPECT_FALSE(PiiRules::Create(settings).ok());
  EXPECT_TRUE(PiiRules::Create(settings, Key()).ok());
}

}  // namespace
}  // namespace llmctl::data
