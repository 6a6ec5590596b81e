#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/data/bpe/fixtures.h"
#include "worker/data/tokenizer/tokenizer_definition.h"

namespace llmctl::data {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct Fault {
  const char* file;
  std::function<void(json&)> damage;
  const char* message;
};

json& Split(json& root) { return root["pre_tokenizer"]["pretokenizers"][0]; }
json& ByteLevel(json& root) { return root["pre_tokenizer"]["pretokenizers"][1]; }
json& Model(json& root) { return root["model"]; }

// As the model's last token, before the added ones.
void AddToModel(json& root, const char* token) {
  Model(root)["vocab"][token] = 600;
  root["added_tokens"][1]["id"] = 601;
  root["added_tokens"][2]["id"] = 602;
}

const Fault kFaults[] = {
    {"gpt2", [](json& r) { r["version"] = "2.0"; }, "$.version: expected \"1.0\""},
    {"gpt2", [](json& r) { r["extra"] = 1; }, "$: unknown field \"extra\""},
    {"gpt2", [](json& r) { r["truncation"] = json::object(); }, "$.truncation: only null is supported"},
    {"gpt2", [](json& r) { r["padding"] = json::object(); }, "$.padding: only null is supported"},
    {"gpt2", [](json& r) { r["normalizer"] = {{"type", "NFKC"}}; }, "$.normalizer.type: the normalizer \"NFKC\""},
    {"qwen", [](json& r) { r["normalizer"]["strip"] = true; }, "$.normalizer: unknown field \"strip\""},
    {"gpt2", [](json& r) { r["pre_tokenizer"] = nullptr; }, "$.pre_tokenizer: expected an object, found null"},
    {"gpt2", [](json& r) { r["pre_tokenizer"] = {{"type", "Whitespace"}}; }, "$.pre_tokenizer.type: the pre-tokenizer"},
    {"gpt2", [](json& r) { r["pre_tokenizer"]["add_prefix_space"] = true; },
     "$.pre_tokenizer.add_prefix_space: only false"},
    {"gpt2", [](json& r) { r["pre_tokenizer"]["use_regex"] = false; }, "$.pre_tokenizer.use_regex: must be true"},
    {"gpt2", [](json& r) { r["pre_tokenizer"]["trim_offsets"] = 1; },
     "$.pre_tokenizer.trim_offsets: expected true or false"},
    {"llama3", [](json& r) { Split(r)["pattern"]["Regex"] = "\\w+"; },
     "pretokenizers[0].pattern.Regex: this pattern is not"},
    {"llama3", [](json& r) { Split(r)["pattern"] = {{"String", " "}}; }, "pretokenizers[0].pattern.Regex: is missing"},
    {"llama3", [](json& r) { Split(r)["behavior"] = "MergedWithNext"; }, "pretokenizers[0].behavior: only Isolated"},
    {"llama3", [](json& r) { Split(r)["invert"] = true; }, "pretokenizers[0].behavior: only Isolated"},
    {"llama3", [](json& r) { ByteLevel(r)["use_regex"] = true; }, "pretokenizers[1].use_regex: must be false"},
    {"llama3", [](json& r) { ByteLevel(r)["type"] = "Digits"; }, "pretokenizers[1].type: expected ByteLevel"},
    {"llama3", [](json& r) { r["pre_tokenizer"]["pretokenizers"].push_back(ByteLevel(r)); }, "found 3 parts"},
    {"gpt2", [](json& r) { r["post_processor"] = {{"type", "BertProcessing"}}; },
     "$.post_processor.type: the post-processor"},
    {"gpt2", [](json& r) { r["decoder"] = {{"type", "WordPiece"}}; }, "$.decoder.type: the decoder \"WordPiece\""},
    {"gpt2", [](json& r) { r.erase("decoder"); }, "$.decoder: is missing"},
    {"gpt2", [](json& r) { Model(r)["type"] = "Unigram"; }, "$.model.type: only BPE"},
    {"gpt2", [](json& r) { Model(r)["dropout"] = 0.1; }, "$.model.dropout: is not supported"},
    {"gpt2", [](json& r) { Model(r)["byte_fallback"] = true; }, "$.model.byte_fallback: only false is supported"},
    {"gpt2", [](json& r) { Model(r)["continuing_subword_prefix"] = "##"; },
     "$.model.continuing_subword_prefix: is not"},
    {"gpt2", [](json& r) { Model(r)["end_of_word_suffix"] = "</w>"; }, "$.model.end_of_word_suffix: is not"},
    {"gpt2", [](json& r) { Model(r)["new_trick"] = true; }, "$.model: unknown field \"new_trick\""},
    {"gpt2", [](json& r) { Model(r)["vocab"]["Ā"] = 9999; }, "$.model.vocab[\"Ā\"]: expected an id below the number"},
    {"gpt2", [](json& r) { Model(r)["vocab"]["!"] = 2; }, "the id 2 is that of"},
    {"gpt2", [](json& r) { AddToModel(r, "a b"); }, "$.model.vocab[\"a b\"]: has a character that is not"},
    {"gpt2", [](json& r) { Model(r)["vocab"]["z"] = "z"; }, "$.model.vocab[\"z\"]: expected an id"},
    {"llama3", [](json& r) { Model(r)["merges"][7] = {"zz", "Ā"}; },
     "$.model.merges[7]: \"zz\" is not in the vocabulary"},
    {"llama3", [](json& r) { Model(r)["merges"][7] = {"z", "Ā"}; },
     "$.model.merges[7]: \"zĀ\" is not in the vocabulary"},
    {"qwen", [](json& r) { Model(r)["merges"][0] = "a b c"; }, "$.model.merges[0]: expected two tokens with one space"},
    {"qwen", [](json& r) { Model(r)["merges"][0] = 7; }, "$.model.merges[0]: expected \"a b\" or [\"a\", \"b\"]"},
    {"qwen", [](json& r) { Model(r)["merges"][2] = Model(r)["merges"][1]; },
     "$.model.merges[2]: the pair occurs twice"},
    {"gpt2", [](json& r) { r["added_tokens"][1]["lstrip"] = true; },
     "$.added_tokens[1].lstrip: only false is supported"},
    {"gpt2", [](json& r) { r["added_tokens"][1]["single_word"] = true; }, "$.added_tokens[1].single_word: only false"},
    {"gpt2", [](json& r) { r["added_tokens"][1]["id"] = 700; },
     "$.added_tokens[1].id: expected 600, the next, found 700"},
    {"gpt2", [](json& r) { r["added_tokens"][0]["id"] = 5; },
     "$.added_tokens[0].id: expected 0, the id in model.vocab"},
    {"gpt2", [](json& r) { r["added_tokens"][1]["content"] = "<|endoftext|>"; }, "[1].content: occurs twice"},
    {"gpt2", [](json& r) { r["added_tokens"][1]["content"] = ""; },
     "$.added_tokens[1].content: an added token must not"},
    {"gpt2", [](json& r) { r["added_tokens"][0]["special"] = "yes"; },
     "$.added_tokens[0].special: expected true or false"},
};

TEST(ParseTokenizerJson, WhatIsNotSupportedIsRefusedByItsPath) {
  for (const Fault& fault : kFaults) {
    json root = json::parse(FixtureText(std::string(fault.file) + ".json"));
    fault.damage(root);

    absl::Status status = ParseTokenizerJson(root.dump(), "x.json").status();

    EXPECT_TRUE(absl::IsInvalidArgument(status)) << fault.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr("x.json: $"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(fault.message));
  }
}

TEST(ParseTokenizerJson, AVocabularyThatLacksAByteIsRefused) {
  json root = json::parse(FixtureText("llama3.json"));
  int64_t id = Model(root)["vocab"]["Ā"];
  Model(root)["vocab"].erase("Ā");
  Model(root)["vocab"]["ĀĀĀ"] = id;

  EXPECT_THAT(std::string(ParseTokenizerJson(root.dump(), "x.json").status().message()),
              HasSubstr("$.model.vocab: the byte 0x00 (\"Ā\") must be a token"));
}

TEST(ParseTokenizerJson, ASpecialThatTextCouldMakeIsRefused) {
  json root = json::parse(FixtureText("gpt2.json"));
  json merge = Model(root)["merges"][3];
  std::string content = merge[0].get<std::string>() + merge[1].get<std::string>();
  root["added_tokens"][0]["content"] = content;
  root["added_tokens"][0]["id"] = Model(root)["vocab"][content];

  EXPECT_THAT(std::string(ParseTokenizerJson(root.dump(), "x.json").status().message()),
              HasSubstr("$.model.merges[3]: makes a special token out of text"));
}

TEST(ParseTokenizerJson, AnAddedTokenThatStandsForOtherBytesInTheModelIsRefused) {
  json root = json::parse(FixtureText("gpt2.json"));
  AddToModel(root, "Ġx");
  root["added_tokens"].insert(root["added_tokens"].begin() + 1, root["added_tokens"][1]);
  root["added_tokens"][1]["id"] = 600;
  root["added_tokens"][1]["content"] = "Ġx";

  EXPECT_THAT(std::string(ParseTokenizerJson(root.dump(), "x.json").status().message()),
              HasSubstr("$.model.vocab[\"Ġx\"]: is an added token too, but stands for other bytes here"));
}

TEST(ParseTokenizerJson, FilesOfEarlierVersionsAreRead) {
  json root = json::parse(FixtureText("gpt2.json"));
  for (const char* field : {"type", "byte_fallback", "ignore_merges"}) Model(root).erase(field);
  Model(root)["continuing_subword_prefix"] = "";
  Model(root)["end_of_word_suffix"] = "";
  Model(root)["unk_token"] = "<|endoftext|>";
  root["pre_tokenizer"].erase("use_regex");
  root["post_processor"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}};

  EXPECT_TRUE(ParseTokenizerJson(root.dump(), "x.json").ok());
}

TEST(ParseTokenizerJson, WhatAddsOnlySpecialsIsPassedOver) {
  json root = json::parse(FixtureText("llama3.json"));
  json byte_level = ByteLevel(root);
  json sequence = {{"type", "Sequence"}, {"processors", json::array({byte_level})}};
  sequence["processors"].push_back({{"type", "TemplateProcessing"},
                                    {"single", json::array()},
                                    {"pair", json::array()},
                                    {"special_tokens", json::object()}});
  root["post_processor"] = sequence;
  Split(root)["behavior"] = "Removed";
  Split(root)["invert"] = true;

  absl::StatusOr<TokenizerDefinition> definition = ParseTokenizerJson(root.dump(), "x.json");

  ASSERT_TRUE(definition.ok()) << definition.status();
  EXPECT_EQ(definition->pattern, Pattern::kLlama3);
}

TEST(TokenizerJsonText, IsReadBackAsItWas) {
  for (const char* name : {"gpt2.json", "llama3.json", "qwen.json"}) {
    std::string text = TokenizerJsonText(*ParseTokenizerJson(FixtureText(name), name));
    absl::StatusOr<TokenizerDefinition> again = ParseTokenizerJson(text, name);

    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(TokenizerJsonText(*again), text);
    json expected = json::parse(FixtureText(name));
    for (json& merge : Model(expected)["merges"]) {
      if (!merge.is_string()) continue;
      std::string pair = merge;
      merge = {pair.substr(0, pair.find(' ')), pair.substr(pair.find(' ') + 1)};
    }
    EXPECT_EQ(json::parse(text), expected);
  }
}

}  // namespace
}  // namespace llmctl::data
