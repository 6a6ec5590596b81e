#include "worker/data/text/url_match.h"

#include <string>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

struct Case {
  std::string text;
  bool expected;
};

// What spaCy 3.8.18's url_match says.
TEST(LooksLikeUrl, SaysWhatSpacySaysOfNumbers) {
  const Case cases[] = {
      {"1.2.3.4", true},
      {"0.2.3.4", false},
      {"223.255.255.254", true},
      {"224.1.1.1", false},
      {"1.2.3.0", false},
      {"1.2.3.255", false},
      {"1.00.01.4", true},
      {"10.1.2.3", false},
      {"127.0.0.1", false},
      {"192.168.0.1", false},
      {"172.16.0.1", false},
      {"172.32.0.1", true},
      {"169.254.1.1", false},
      {"1.2.3.4:80", true},
      {"1.2.3.4:8", false},
      {"1.2.3.4:123456", false},
      {"1.2.3.4/x", true},
      {"http://u@1.2.3.4:8080/p", true},
      {"a@1.2.3.4", true},
  };

  for (const Case& c : cases) EXPECT_EQ(LooksLikeUrl(c.text), c.expected) << c.text;
}

TEST(LooksLikeUrl, SaysWhatSpacySaysOfNames) {
  const Case cases[] = {
      {"example.com", true},
      {"a.b", false},
      {"a.bc", true},
      {"http://a.bc", true},
      {"x://a.bc", false},
      {"xy://a.bc", true},
      {"http://a.b/c?d=e&f#g", false},
      {"user@host.org", true},
      {"u:p@host.org:80/x", true},
      {"@host.org", false},
      {"a@b@c.de", true},
      {"a.bc:80", true},
      {"a.bc:1", false},
      {"a.bc:80/", true},
      {"a.bc?", true},
      {"a.bc#x", true},
      {"-a.bc", false},
      {"a-.bc", false},
      {"a_b.cd", true},
      {"a_.cd", false},
      {"_a.cd", false},
      {"a..bc", false},
      {".a.bc", false},
      {"a.bc.", false},
      {"a.Bc", false},
      {"A.bc", true},
      {"a.b1", false},
      {"a.é", false},
      {"a.éé", true},
      {"é.com", true},
      {"a.中文", true},
      {std::string(64, 'x') + ".com", true},
      {std::string(65, 'x') + ".com", false},
      {"a." + std::string(63, 'x'), true},
      {"a." + std::string(64, 'x'), false},
      {"file.txt", true},
      {"e.g", false},
      {"http://", false},
      {"http:/a.bc", false},
      {"h+t-t.p://a.bc", true},
      {"ht/tp://a.bc", false},
      {"a.bc:80x", false},
      {"a.bc;x", false},
      {"a.bc/ü", true},
      {"中.国", false},
      {"a.b.c.de", true},
      {"𠀀.com", false},
      {"a.𠀀𠀀", true},
      {"¡.co", true},
  };

  for (const Case& c : cases) EXPECT_EQ(LooksLikeUrl(c.text), c.expected) << c.text;
}

TEST(LooksLikeUrl, TakesTimeInProportionToTheText) {
  std::string ats(1 << 20, '@');
  std::string periods;
  for (int i = 0; i < 1 << 19; ++i) periods += "a.";
  std::string users;
  for (int i = 0; i < 1 << 18; ++i) users += "a.b@";

  EXPECT_FALSE(LooksLikeUrl(ats + "."));
  EXPECT_FALSE(LooksLikeUrl(periods));
  EXPECT_TRUE(LooksLikeUrl(periods + "com"));
  EXPECT_FALSE(LooksLikeUrl(users));
}

}  // namespace
}  // namespace llmctl::data
