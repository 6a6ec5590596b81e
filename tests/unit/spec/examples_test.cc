// The files in examples/ are what people copy: they must be valid, and the reference must show every field.
#include <filesystem>
#include <set>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/spec/fault.h"
#include "common/spec/read_corpus_spec.h"
#include "common/spec/read_job_spec.h"
#include "common/spec/validate.h"

namespace llmctl::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

v1::JobSpec ReadExample(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  absl::StatusOr<v1::JobSpec> spec = ReadJobSpec(text.value_or(""), path);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.value_or(v1::JobSpec());
}

v1::CorpusSpec ReadCorpusExample(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  absl::StatusOr<v1::CorpusSpec> spec = ReadCorpusSpec(text.value_or(""), path);
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return spec.value_or(v1::CorpusSpec());
}

// Fields that the example does not name, or names with the zero that counts as absent.
void CollectAbsent(const Message& section, const std::string& path, std::set<std::string>& absent) {
  for (int i = 0; i < section.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *section.GetDescriptor()->field(i);
    std::string field_path = ChildPath(path, field.json_name());
    bool there = field.is_repeated() ? section.GetReflection()->FieldSize(section, &field) > 0
                                     : section.GetReflection()->HasField(section, &field);
    if (!there) {
      absent.insert(field_path);
    } else if (!field.is_map() && field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CollectAbsent(field.is_repeated() ? section.GetReflection()->GetRepeatedMessage(section, &field, 0)
                                        : section.GetReflection()->GetMessage(section, &field),
                    field_path, absent);
    }
  }
}

TEST(Examples, AreValid) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.path().extension() != ".yaml") continue;
    absl::StatusOr<std::string> text = ReadFile(entry.path().string());
    ASSERT_TRUE(text.ok()) << text.status();
    if (KindOf(*text) == "Corpus") {
      ReadCorpusExample(entry.path().string());
    } else {
      ReadExample(entry.path().string());
    }
    ++examples;
  }
  EXPECT_GE(examples, 4);
}

TEST(Examples, ReferenceNamesEveryField) {
  std::set<std::string> absent;

  CollectAbsent(ReadExample("examples/reference.yaml"), "", absent);

  // Written in the file; their zero is their default.
  EXPECT_EQ(absent, (std::set<std::string>{"model.tieEmbeddings", "faultTolerance.maxRestarts",
                                           "faultTolerance.nanBudget"}));
}

TEST(Examples, ReferenceShowsTheDefaultsItSpeaksOf) {
  v1::JobSpec reference = ReadExample("examples/reference.yaml");
  v1::JobSpec bare = reference;
  bare.clear_priority();
  bare.clear_fault_tolerance();
  // Has no default.
  bare.mutable_fault_tolerance()->set_hang_after(reference.fault_tolerance().hang_after());
  bare.mutable_training()->clear_optimizer();
  bare.mutable_training()->clear_schedule();
  bare.mutable_training()->clear_validation();
  bare.mutable_training()->clear_seed();
  bare.mutable_training()->clear_precision();
  bare.mutable_training()->clear_gradient_clip_norm();
  bare.mutable_model()->clear_kv_heads();
  bare.mutable_model()->clear_ffn_size();
  bare.mutable_model()->clear_rope_theta();
  bare.mutable_model()->clear_norm_epsilon();
  bare.mutable_model()->clear_init_std();
  bare.mutable_checkpoint()->clear_every_steps();
  bare.mutable_checkpoint()->clear_keep_last();
  bare.mutable_metadata()->clear_project();

  ApplyDefaults(reference);
  ApplyDefaults(bare);

  EXPECT_EQ(bare.DebugString(), reference.DebugString());
}

TEST(Examples, CorpusReferenceNamesEveryField) {
  v1::CorpusSpec reference = ReadCorpusExample("examples/corpus_reference.yaml");
  std::set<std::string> absent;

  CollectAbsent(reference, "", absent);

  // Written in the file; their zero is their default.
  EXPECT_EQ(absent, (std::set<std::string>{"threads", "language.model", "language.keepUnknown", "language.wholeText",
                                           "quality.keepMeasurements", "quality.fineweb.keepWithoutTerminalLines",
                                           "perplexity.tokenizer", "mix.budgetTokens", "mix.weights"}));
}

}  // namespace
}  // namespace llmctl::spec
