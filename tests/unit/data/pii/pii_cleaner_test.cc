#include "worker/data/pii/pii_cleaner.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/unit/data/pii/default_rules.h"

namespace llmctl::data {
namespace {

constexpr char kKey[] = "a key of the test, long enough";

struct Cleaner {
  explicit Cleaner(PiiSettings settings = {}) {
    absl::StatusOr<PiiKey> key = PiiKey::FromBytes(kKey, "the test");
    rules = *PiiRules::Create(std::move(settings), *std::move(key));
    cleaner = std::make_unique<PiiCleaner>(*rules);
  }
  std::string Clean(std::string text) {
    outcome = cleaner->Apply(text, counters);
    return text;
  }

  std::unique_ptr<PiiRules> rules;
  std::unique_ptr<PiiCleaner> cleaner;
  PiiCounters counters;
  PiiOutcome outcome;
};

PiiSettings AllOf(PiiAction action) {
  PiiSettings settings;
  for (PiiRule& rule : settings.rules) rule.action = action;
  return settings;
}

struct Case {
  const char* text;
  const char* clean;
};

void ExpectClean(const std::vector<Case>& cases) {
  PiiCleaner cleaner(DefaultRules());
  PiiCounters counters;
  for (const Case& c : cases) {
    std::string text = c.text;
    cleaner.Apply(text, counters);
    EXPECT_EQ(text, c.clean) << "of " << c.text;
  }
}

TEST(PiiCleaner, AddressesOfMail) {
  ExpectClean({
      {"Write to joe.b+c@mail.example.org.", "Write to <EMAIL>."},
      {"<joe@example.org>,ann@example.com;", "<<EMAIL>>,<EMAIL>;"},
      {"mailto:joe@example.org?subject=x", "mailto:<EMAIL>?subject=x"},
      {"see joe@example.org.Then come", "see <EMAIL>.Then come"},
      {"jos\xc3\xa9@m\xc3\xbcller.de schreibt", "<EMAIL> schreibt"},
      {"joe@\xe4\xbe\x8b\xe5\xad\x90.\xe4\xb8\xad\xe5\x9b\xbd", "<EMAIL>"},
      {"\xe8\xaf\xb7\xe8\x81\x94\xe7\xb3\xbbjoe@example.cn\xe8\xb0\xa2\xe8\xb0\xa2",
       "\xe8\xaf\xb7\xe8\x81\x94\xe7\xb3\xbb<EMAIL>\xe8\xb0\xa2\xe8\xb0\xa2"},
      {"joe (at) example (dot) org, please", "<EMAIL>, please"},
      {"joe [at] example.org", "<EMAIL>"},
      {"joe{at}example{dot}co{dot}uk", "<EMAIL>"},
      {"joe@example[dot]org", "<EMAIL>"},
      {"joe dot b at example dot com!", "<EMAIL>!"},
      {"joe@[203.0.113.7] is a literal", "<EMAIL> is a literal"},
      {"\"Joe B\"@example.org", "<EMAIL>"},
      {"a@b.com@c.org", "<EMAIL>@c.org"},
      {"request@bugs.example.org\xeb\xa1\x9c", "<EMAIL>\xeb\xa1\x9c"},
      {"E<lt>joe@example.orgE<gt>", "E<lt><EMAIL>E<gt>"},
      // None of these is one.
      {"getty@tty1.service and x@y", "getty@tty1.service and x@y"},
      {"git@example.org:a/b.git", "git@example.org:a/b.git"},
      {"look at the dot in it", "look at the dot in it"},
      {"ftp://joe@example.org/x", "ftp://joe@example.org/x"},
      {"joe@host..org", "joe@host..org"},
      {"$user@example.org", "$user@example.org"},
  });
}

TEST(PiiCleaner, AddressesOfMachines) {
  ExpectClean({
      {"ping 8.8.8.8, or 93.184.216.34:80", "ping <IPV4>, or <IPV4>:80"},
      {"from 5.9.1.2", "from <IPV4>"},
      {"2001:4860:4860::8888 and 2606:2800:220:1:248:1893:25c8:1946", "<IPV6> and <IPV6>"},
      {"::ffff:8.8.8.8", "::ffff:<IPV4>"},
      {"10.0.0.1 192.168.1.1 127.0.0.1 203.0.113.9 224.0.0.1 fe80::1 2001:db8::1 ::1",
       "10.0.0.1 192.168.1.1 127.0.0.1 203.0.113.9 224.0.0.1 fe80::1 2001:db8::1 ::1"},
      {"version 91.0.44.72, Chrome/91.0.44.72, x-91.0.44.72 and 91.0.44.72-1",
       "version 91.0.44.72, Chrome/91.0.44.72, x-91.0.44.72 and 91.0.44.72-1"},
      {"1.3.6.1 and 1.3.6.1.4.1, 43.13.2.256", "1.3.6.1 and 1.3.6.1.4.1, 43.13.2.256"},
      {"43.13.2.2. Title", "43.13.2.2. Title"},
      {"7.165.77.213.in-addr.arpa, 2.20.1.155.g426c96f", "7.165.77.213.in-addr.arpa, 2.20.1.155.g426c96f"},
      {"std::string 12:30:45 00:1A:2B:3C:4D:5E", "std::string 12:30:45 00:1A:2B:3C:4D:5E"},
  });
}

TEST(PiiCleaner, NumbersWithCheckDigits) {
  ExpectClean({
      {"4111 1111 1111 1111 or 4111-1111-1111-1111 or 4111111111111111", "<CARD> or <CARD> or <CARD>"},
      {"378282246310005, 3782 822463 10005", "<CARD>, <CARD>"},
      {"4111 1111 1111 1112, 0000 0000 0000 0000, 9.4111111111111111",
       "4111 1111 1111 1112, 0000 0000 0000 0000, 9.4111111111111111"},
      {"DE89 3704 0044 0532 0130 00 and GB29NWBK60161331926819.", "<IBAN> and <IBAN>."},
      {"DE88 3704 0044 0532 0130 00, XX89370400440532013000", "DE88 3704 0044 0532 0130 00, XX89370400440532013000"},
      {"SSN 536-90-4399; social security no. 536904399", "SSN <US_SSN>; social security no. <US_SSN>"},
      {"000-12-3456 666-12-3456 536904399", "000-12-3456 666-12-3456 536904399"},
      {"11010519491231002X and 110105194912310021", "<CN_ID> and 110105194912310021"},
      {"\xe7\x94\xb5\xe8\xaf\x9d" "13812345678, +86 138 1234 5678", "\xe7\x94\xb5\xe8\xaf\x9d<CN_MOBILE>, <CN_MOBILE>"},
      {"total 13812345678", "total 13812345678"},
      {"ISBN 978-3-16-148410-0, 2023-11-05 10:12:13, 3.14159265358979",
       "ISBN 978-3-16-148410-0, 2023-11-05 10:12:13, 3.14159265358979"},
  });
}

TEST(PiiCleaner, Telephones) {
  ExpectClean({
      {"+44 20 7946 0958", "<PHONE>"},
      {"+49 (0)30 901820 and 0049 30 901820", "<PHONE> and <PHONE>"},
      {"(212) 555-0123, 212-555-0123 ext. 12", "<PHONE>, <PHONE>"},
      {"020 7946 0958, 01632 960123", "<PHONE>, <PHONE>"},
      {"030/901820 (030) 901820", "<PHONE> <PHONE>"},
      {"01 23 45 67 89 ou 01.23.45.67.89", "<PHONE> ou <PHONE>"},
      {"tel. 612 345 678; 612 345 678", "tel. <PHONE>; <PHONE>"},
      {"(11) 91234-5678", "<PHONE>"},
      {"010-62345678", "<PHONE>"},
      {"03-1234-5678", "<PHONE>"},
      {"8 (495) 123-45-67", "<PHONE>"},
      {"Boston, MA 02110-1301", "Boston, MA 02110-1301"},
      {"01 02 03 04 05 and 00 02 00 00 22 00 00 e0", "01 02 03 04 05 and 00 02 00 00 22 00 00 e0"},
      {"+31 (020) 535 5400 x12", "<PHONE>"},
      {"00 30 00 00 00 00 07 00 da 03 46 28 08 06 and 00800000 00001000",
       "00 30 00 00 00 00 07 00 da 03 46 28 08 06 and 00800000 00001000"},
      {"612 345 678 people, 12/05/2023, 2023-01-02", "612 345 678 people, 12/05/2023, 2023-01-02"},
      {"deadbeef02079460958 1.020.7946", "deadbeef02079460958 1.020.7946"},
  });
}

TEST(PiiCleaner, OneTypeThatIsToldToDropsTheDocument) {
  PiiSettings settings = AllOf(PiiAction::kKeep);
  settings.Of(PiiType::kCard).action = PiiAction::kDrop;
  Cleaner cleaner(settings);

  EXPECT_EQ(cleaner.Clean("joe@example.org"), "joe@example.org");
  EXPECT_TRUE(cleaner.outcome.keep);
  EXPECT_EQ(cleaner.Clean("4111111111111111 4111111111111111 joe@example.org"),
            "4111111111111111 4111111111111111 joe@example.org");

  EXPECT_FALSE(cleaner.outcome.keep);
  EXPECT_EQ(cleaner.outcome.reason, "pii_card");
  EXPECT_EQ(cleaner.outcome.value, 2);
  EXPECT_EQ(cleaner.counters.documents, 2);
  EXPECT_EQ(cleaner.counters.documents_dropped, 1);
  EXPECT_EQ(cleaner.counters.found[static_cast<size_t>(PiiType::kEmail)], 2);
}

TEST(PiiCleaner, Secrets) {
  ExpectClean({
      {"AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"},
      {"id=AKIA" "I44QH8DHBZ3K7Q2M.", "id=<API_KEY>."},
      {"token ghp_" "16C7e42F292c6912E7710c838347Ae178B4a", "token <API_KEY>"},
      {"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
      {"glpat-" "9Zx2kQ7vB4nM1sR8tY3w", "<API_KEY>"},
      {"api_key = \"9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c\"", "api_key = \"<API_KEY>\""},
      {"api_key = get_the_key_of_the_service(2, 3)", "api_key = get_the_key_of_the_service(2, 3)"},
      {"https://joe:s3cret@example.org/x", "https://<URL_CREDENTIALS>@example.org/x"},
      {"http://user:password@host/", "http://user:password@host/"},
      {"-----BEGIN RSA PRIVATE" " KEY-----\nMIIEowIBAAKCAQEAwJ8k3+Yq\nB2n5dD1vS7Qm9f/0XaZp1234\n"
       "-----END RSA PRIVATE KEY-----\n",
       "<PRIVATE_KEY>\n"},
      {"A file with -----BEGIN PRIVATE KEY----- in it", "A file with -----BEGIN PRIVATE KEY----- in it"},
  });
}

}  // namespace
}  // namespace llmctl::data
