// Odd texts cost as much per byte as long ones of their kind: the bytes that rules look at are counted, not the time.
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/data/pii/default_rules.h"
#include "worker/data/pii/pii_cleaner.h"

namespace llmctl::data {
namespace {

std::string Repeated(const char* piece, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

TEST(PiiWork, GrowsWithTheLengthOfTheText) {
  PiiCleaner cleaner(DefaultRules());
  const char* pieces[] = {
      "a-", "a.", "a@", "@", "a@b.", "a@b.c", "a@b.com@", "\"@", "://a:b", "a:b@", "(at)", "a(at)b.", " dot ",
      "a at b dot ", "1", "1 ", "1.", "1-1 ", "(0", "+1", "0012", "1.2.3.4.", "8.8.8.8 ", "2001:", "2001::", "DE89",
      "DE89 3704 ", "4111 ", "eyJ", "eyJhbGciOiJI.", "sk-", "AKIA", "api_key=", "-----BEGIN PRIVATE KEY-----", "\xe4\xb8\xad@", "1\xc2\xa0",
      "hooks.slack.com/services/T1/B1/", "138 1234 5678 "};
  for (const char* piece : pieces) {
    cleaner.Find(Repeated(piece, 30000));
    const uint64_t little = cleaner.work();
    cleaner.Find(Repeated(piece, 120000));

    EXPECT_LE(cleaner.work(), 5 * little) << piece;
    EXPECT_LE(cleaner.work(), 600u * 120000) << piece;
  }
}

}  // namespace
}  // namespace llmctl::data
