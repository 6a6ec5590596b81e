#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"
#include "worker/data/perplexity/arpa_reader.h"
#include "worker/data/perplexity/arpa_writer.h"
#include "worker/data/perplexity/ngram_model.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] =
    "\\data\\\nngram 1=4\nngram 2=2\n\n"
    "\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.5\n-0.25\t</s>\n-0.75\ta\t-0.125\n\n"
    "\\2-grams:\n-0.5\t<s> a\n-0.25\ta </s>\n\n\\end\\\n";

std::string Changed(const std::string& from, const std::string& to) {
  std::string changed = absl::StrReplaceAll(kModel, {{from, to}});
  EXPECT_NE(changed, kModel) << from;
  return changed;
}

absl::Status StatusOf(const std::string& text) {
  absl::StatusOr<ArpaReader> reader = ArpaReader::OpenText(text, "m.arpa");
  if (!reader.ok()) return reader.status();
  return NgramModel::Load(*reader).status();
}

TEST(ArpaReader, ReadsNgramsInOrder) {
  auto reader = ArpaReader::OpenText(kModel, "m.arpa");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(reader->counts(), ElementsAre(4, 2));
  ArpaNgram gram;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(*reader->Next(gram));
  EXPECT_EQ(gram.order, 1);
  EXPECT_EQ(gram.words[0], "a");
  EXPECT_EQ(gram.log_probability, -0.75f);
  EXPECT_TRUE(gram.has_backoff);
  EXPECT_EQ(gram.log_backoff, -0.125f);
  EXPECT_EQ(reader->line(), 9u);
  ASSERT_TRUE(*reader->Next(gram));
  EXPECT_EQ(gram.words[0], "<s>");
  EXPECT_EQ(gram.words[1], "a");
  EXPECT_FALSE(gram.has_backoff);
  ASSERT_TRUE(*reader->Next(gram));
  EXPECT_FALSE(*reader->Next(gram));
}

TEST(ArpaReader, TakesWhatOtherToolsWrite) {
  EXPECT_TRUE(StatusOf(kModel).ok());
  EXPECT_TRUE(StatusOf(absl::StrReplaceAll(kModel, {{"\n", "\r\n"}})).ok());
  EXPECT_TRUE(StatusOf(absl::StrCat("\n# a remark\n\n", kModel, "\n\n")).ok());
  EXPECT_TRUE(StatusOf(Changed("-0.5\t<s> a\n", "-0.5 <s>\ta \n")).ok()) << "blanks for tabs";
  EXPECT_TRUE(StatusOf(Changed("-0.5\t<s> a\n", "-0.5\t<s> a\t0\n")).ok()) << "a back-off of 0 in the highest order";
  EXPECT_TRUE(StatusOf(Changed("-0.5\t<s> a\n", "-5e-1\t<s> a\n")).ok());
  EXPECT_TRUE(StatusOf(Changed("-0.25\ta </s>", "-1e-60\ta </s>")).ok()) << "less than a float can say";
  EXPECT_TRUE(StatusOf(Changed("ngram 2=2\n\n", "ngram 2=2\n")).ok());
  EXPECT_TRUE(StatusOf(Changed("\n\n\\end\\\n", "\n\\end\\")).ok());
}

struct Fault {
  std::string text;
  const char* message;
};

TEST(ArpaReader, FaultsNameFileAndLine) {
  const std::string long_line(3 << 20, 'x');
  for (const Fault& fault : std::vector<Fault>{
           {"", "line 1: the file ends before \"\\data\\\""},
           {"hello\n", "line 1: expected \"\\data\\\", found \"hello\"; this is no ARPA file"},
           {long_line, "line 1: it is longer than"},
           {"\\data\\\n", "the file ends within its header"},
           {"\\data\\\n\n\\1-grams:\n", "the header has no counts"},
           {Changed("ngram 1=4", "ngram 1=0"), "there are no 1-grams"},
           {Changed("ngram 2=2", "ngram 3=2"), "line 3: expected the count of 2-grams, found that of 3-grams"},
           {Changed("ngram 2=2", "ngram 2=x"), "line 3: expected a count as in"},
           {Changed("ngram 2=2", "ngram 2=-1"), "line 3: expected a count as in"},
           {Changed("ngram 1=4", "ngram 1=3"), "line 9: the header says that there are 3 1-grams, found more of them"},
           {Changed("ngram 1=4", "ngram 1=5"), "line 11: the header says that there are 5 1-grams, found only 4"},
           {Changed("ngram 2=2", "ngram 2=3"), "line 15: the header says that there are 3 2-grams, found only 2"},
           {Changed("\\2-grams:", "\\3-grams:"), "line 11: expected \"\\2-grams:\", found \"\\3-grams:\""},
           {Changed("\\end\\", "\\fin\\"), "line 15: expected \"\\end\\\", found \"\\fin\\\""},
           {Changed("\\end\\\n", ""), "the file ends without \"\\end\\\""},
           {Changed("\\end\\\n", "\\end\\\nmore\n"), "line 16: found \"more\" behind"},
           {Changed("-0.75\ta", "nan\ta"), "line 9: expected a finite number as log probability, found \"nan\""},
           {Changed("-0.75\ta", "-inf\ta"), "line 9: expected a finite number as log probability"},
           {Changed("-0.75\ta", "-0.75x\ta"), "found \"-0.75x\""},
           {Changed("-0.75\ta", "-1e60\ta"), "line 9: expected a finite number"},
           {Changed("-0.75\ta", "0.75\ta"), "line 9: the log probability 0.75 is above 0"},
           {Changed("a\t-0.125", "a\tnan"), "line 9: expected a finite number as back-off weight"},
           {Changed("a\t-0.125", "a\t-0.125 b"), "line 9: found \" b\" behind the back-off weight"},
           {Changed("-0.5\t<s> a", "-0.5\t<s>"), "line 12: expected 2 words, found 1"},
           {Changed("-0.5\t<s> a", "-0.5\t<s> a\t-0.1"), "line 12: an n-gram of the highest order has the back-off"},
           {Changed("a\t-0.125", "a"), "line 13: the 2-gram has a context (its first 1 words) without a back-off"},
           {Changed("\ta </s>", "\tb </s>"), "line 13: the 2-gram has no context: its first 1 words are no 1-gram"},
           {Changed("<s> a\n", "<s> b\n"), "line 12: the 2-gram ends with a word that is no 1-gram"},
           {Changed("-0.25\ta </s>", "-0.25\t<s> a"), "line 13: the 2-gram was given before"},
           {Changed("\t<unk>", "\ta"), "line 9: the 1-gram was given before"},
           {Changed("-99\t<s>", "-99\tx"), "the 2-gram has no context"},
           {Changed("</s>", "</S>"), "the model has no 1-gram </s>"},
       }) {
    absl::Status status = StatusOf(fault.text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("read m.arpa: line "));
    EXPECT_THAT(status.message(), HasSubstr(fault.message));
  }
}

TEST(ArpaReader, HeaderDoesNotDecideOnMemory) {
  absl::Status status = StatusOf(Changed("ngram 2=2", "ngram 2=9000000000000"));
  EXPECT_THAT(status.message(), HasSubstr("found only 2"));
}

TEST(ArpaReader, CompressedFilesOfSeveralMembersAreRead) {
  TemporaryDirectory directory;
  const std::string path = directory / "m.arpa.gz";
  const std::string text = kModel;
  for (const std::string& part : {text.substr(0, 50), text.substr(50)}) {
    gzFile file = gzopen(path.c_str(), "ab");
    gzwrite(file, part.data(), part.size());
    gzclose(file);
  }
  EXPECT_TRUE(NgramModel::LoadFile(path).ok());

  std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, bytes.size() - 12)).ok());
  EXPECT_THAT(NgramModel::LoadFile(path).status().message(), HasSubstr("the gzip data is damaged or cut short"));
  EXPECT_EQ(NgramModel::LoadFile(directory / "none").status().code(), absl::StatusCode::kNotFound);
}

TEST(ArpaWriter, WhatWasReadIsWrittenAgain) {
  TemporaryDirectory directory;
  const std::string model = *ReadFile("tests/unit/data/perplexity/trained.arpa");
  auto reader = ArpaReader::OpenText(model, "trained.arpa");
  auto writer = ArpaWriter::Create(directory / "again.arpa", reader->counts());
  ASSERT_TRUE(writer.ok()) << writer.status();
  ArpaNgram gram;
  for (auto more = reader->Next(gram); more.ok() && *more; more = reader->Next(gram)) {
    ASSERT_TRUE((*writer)->Add(gram).ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_TRUE(*ReadFile(directory / "again.arpa") == model);
}

TEST(ArpaWriter, UnfinishedFileIsGone) {
  TemporaryDirectory directory;
  auto writer = ArpaWriter::Create(directory / "m.arpa", {1});
  writer->reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace llmctl::data
