// What JsonText writes, a JSON parser must read back: every byte of every string, whatever it is.
#include "coordinator/store/json_text.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace llmctl::store {
namespace {

using nlohmann::json;

json Read(const JsonText& text) { return json::parse(text.text(), nullptr, /*allow_exceptions=*/false); }

TEST(JsonText, ObjectsAndArraysAreReadBackAsTheyWerePutTogether) {
  JsonText list = JsonText::Array();
  JsonText empty = list;
  list.push_back({{"deep", 1}});
  list.push_back("two");
  JsonText object = {{"null", nullptr}, {"yes", true},   {"number", int64_t{-9223372036854775807}},
                     {"list", list},    {"empty", empty}, {"labels", std::map<std::string, std::string>{{"a", "b"}}}};
  object.Set("later", 2);
  object.Set("counts", std::map<std::string, int>{{"oom", 1}});
  object.Set("third", 1.0 / 3);
  object.Set("none", std::numeric_limits<double>::infinity());

  EXPECT_EQ(Read(object), json({{"null", nullptr},
                                {"yes", true},
                                {"number", -9223372036854775807},
                                {"list", {{{"deep", 1}}, "two"}},
                                {"empty", json::array()},
                                {"labels", {{"a", "b"}}},
                                {"later", 2},
                                {"counts", {{"oom", 1}}},
                                {"third", 1.0 / 3},
                                {"none", nullptr}}));
  EXPECT_EQ(Read(JsonText(std::map<std::string, std::string>())), json::object());
}

TEST(JsonText, StringsKeepEveryCharacter) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  all += "größe \u20ac \U0001F600 \ud7ff \ue000";

  EXPECT_EQ(Read(JsonText(all)).get<std::string>(), all);
}

TEST(JsonText, BytesThatAreNotUtf8AreReplaced) {
  for (const char* bad : {"\xff", "a\x80z", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5",
                          "\xe2\x82", "\xf0\x9f\x98", "end \xc3"}) {
    json read = Read(JsonText(bad));

    ASSERT_TRUE(read.is_string()) << bad;
    EXPECT_THAT(read.get<std::string>(), ::testing::HasSubstr("\xEF\xBF\xBD")) << bad;
  }
  EXPECT_EQ(Read(JsonText("a\xffz")).get<std::string>(), "a\xEF\xBF\xBDz");
}

}  // namespace
}  // namespace llmctl::store
