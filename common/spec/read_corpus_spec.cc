#include "common/spec/read_corpus_spec.h"

#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/spec/bind_yaml.h"
#include "common/spec/fault.h"
#include "common/spec/field_defaults.h"
#include "common/spec/field_rules.h"
#include "common/spec/scalar.h"
#include "common/spec/yaml_tree.h"

namespace llmctl::spec {
namespace {

// The rules between fields. `spec` is with defaults.
class CorpusRules {
 public:
  CorpusRules(const v1::CorpusSpec& spec, const Positions& given, FaultList& faults)
      : spec_(spec), given_(given), faults_(faults) {}

  void CheckSources() {
    std::set<std::string> names;
    for (int i = 0; i < spec_.sources_size(); ++i) {
      const std::string& name = spec_.sources(i).name();
      std::string path = ChildPath(ItemPath("sources", i), "name");
      if (!name.empty() && !names.insert(name).second) {
        Fail(path, absl::StrCat("found ", Shown(name), " a second time, expected a name for each source"));
      }
    }
  }

  void CheckLanguage() {
    if (!spec_.has_language()) return;
    const v1::LanguageStage& language = spec_.language();
    if (language.detector() == "fasttext" && language.model().empty()) {
      Fail("language.model", "missing, expected the path of a fastText model such as lid.176.ftz");
    } else if (language.detector() == "cld2" && !language.model().empty()) {
      Fail("language.model", "found a model, expected none: cld2 has its own (detector: fasttext takes one)");
    }
    std::set<std::string> labels;
    for (int i = 0; i < language.keep_size(); ++i) {
      if (labels.insert(language.keep(i).language()).second) continue;
      Fail(ChildPath(ItemPath("language.keep", i), "language"),
           absl::StrCat("found ", Shown(language.keep(i).language()), " a second time, expected each language once"));
    }
  }

  void CheckPerplexity() {
    if (!spec_.has_perplexity()) return;
    const v1::PerplexityStage& perplexity = spec_.perplexity();
    if ((perplexity.unit() == "pieces") == perplexity.tokenizer().empty()) {
      Fail("perplexity.tokenizer", perplexity.tokenizer().empty()
                                       ? "missing, expected the tokenizer.json whose pieces the models were trained on"
                                       : "found a tokenizer, expected none: perplexity.unit is words");
    }
    std::set<std::string> languages;
    for (int i = 0; i < perplexity.models_size(); ++i) {
      const v1::PerplexityModel& model = perplexity.models(i);
      std::string path = ItemPath("perplexity.models", i);
      if (!languages.insert(model.language()).second) {
        Fail(ChildPath(path, "language"),
             absl::StrCat("found ", Shown(model.language()), " a second time, expected one model for each language"));
      }
      if (model.has_head_cutoff() != model.has_middle_cutoff()) {
        Fail(path, "found one of headCutoff and middleCutoff, expected both or none");
      }
    }
  }

  void CheckPii() {
    bool pseudonym = spec_.pii().action() == "pseudonym";
    std::set<std::string> types;
    for (int i = 0; i < spec_.pii().types_size(); ++i) {
      const v1::PiiRule& rule = spec_.pii().types(i);
      pseudonym = pseudonym || rule.action() == "pseudonym";
      if (types.insert(rule.type()).second) continue;
      Fail(ChildPath(ItemPath("pii.types", i), "type"),
           absl::StrCat("found ", rule.type(), " a second time, expected one rule for each type"));
    }
    if (pseudonym && spec_.pii().key_file().empty()) {
      Fail("pii.keyFile", "missing, expected a file with the secret that pseudonyms are made with");
    }
  }

  void CheckLengths() {
    if (!spec_.has_length_balance()) return;
    const v1::LengthBalanceStage& balance = spec_.length_balance();
    if (balance.weights_size() != balance.edges_size() + 1) {
      Fail("lengthBalance.weights", absl::StrCat("found ", balance.weights_size(),
                                                 " weights, expected one for each of ", balance.edges_size() + 1,
                                                 " buckets"));
    }
    for (int i = 1; i < balance.edges_size(); ++i) {
      if (balance.edges(i) > balance.edges(i - 1)) continue;
      Fail(ItemPath("lengthBalance.edges", i),
           absl::StrCat("found ", balance.edges(i), ", expected more than the one before, ", balance.edges(i - 1)));
    }
  }

  void CheckMix() {
    if (!spec_.has_mix() || faults_.Concerns({"mix.method"})) return;
    bool is_explicit = spec_.mix().method() == "explicit";
    if (is_explicit == (spec_.mix().weights_size() > 0)) return;
    Fail("mix.weights", is_explicit ? "missing, expected a group and a weight each, as mix.method is explicit"
                                    : absl::StrCat("found weights, expected none, as mix.method is ",
                                                   spec_.mix().method()));
  }

  void CheckDedup() {
    std::set<std::string> units;
    for (int i = 0; i < spec_.exact_dedup().units_size(); ++i) {
      if (units.insert(spec_.exact_dedup().units(i)).second) continue;
      Fail(ItemPath("exactDedup.units", i), absl::StrCat("found ", spec_.exact_dedup().units(i),
                                                         " a second time, expected each unit once"));
    }
    constexpr int64_t kHashesMax = 16384;
    const v1::NearDedupStage& near = spec_.near_dedup();
    if (spec_.has_near_dedup() && !faults_.Concerns({"nearDedup.bands", "nearDedup.rows"}) &&
        int64_t{near.bands()} * near.rows() > kHashesMax) {
      Fail("nearDedup.bands", absl::StrCat("found ", near.bands(), ", expected bands x rows of at most ", kHashesMax));
    }
  }

 private:
  void Fail(const std::string& path, const std::string& text) {
    if (!faults_.Concerns({path})) faults_.Add(given_, path, text);
  }

  const v1::CorpusSpec& spec_;
  const Positions& given_;
  FaultList& faults_;
};

void AddFaults(const v1::CorpusSpec& spec, const Positions& given, FaultList& faults) {
  CheckFieldRules(spec, "", given, faults);
  v1::CorpusSpec resolved = spec;
  ApplyCorpusDefaults(resolved);
  CorpusRules rules(resolved, given, faults);
  rules.CheckSources();
  rules.CheckLanguage();
  rules.CheckDedup();
  rules.CheckPerplexity();
  rules.CheckPii();
  rules.CheckLengths();
  rules.CheckMix();
}

// As FineWeb was made: https://arxiv.org/abs/2406.17557.
void AddFineWebFilters(v1::QualityStage& quality) {
  quality.mutable_gopher_repetition();
  quality.mutable_gopher_quality();
  quality.mutable_c4()->set_terminal_mark_required(false);
  quality.mutable_fineweb();
}

}  // namespace

absl::StatusOr<v1::CorpusSpec> ReadCorpusSpec(absl::string_view text, absl::string_view file) {
  v1::CorpusSpec spec;
  LLM_RETURN_IF_ERROR(ReadSpec(
      text, file, spec, [&](const Positions& given, FaultList& faults) { AddFaults(spec, given, faults); }));
  return spec;
}

void ApplyCorpusDefaults(v1::CorpusSpec& spec) {
  if (spec.has_quality()) {
    v1::QualityStage& quality = *spec.mutable_quality();
    bool none = !quality.has_gopher_repetition() && !quality.has_gopher_quality() && !quality.has_c4() &&
                !quality.has_fineweb() && !quality.has_paragraphs();
    if (none) AddFineWebFilters(quality);
  }
  if (spec.has_exact_dedup() && spec.exact_dedup().units().empty()) spec.mutable_exact_dedup()->add_units("document");
  ApplyFieldDefaults(spec);
}

std::string KindOf(absl::string_view text) {
  FaultList faults;
  YamlTree tree(text, faults);
  if (tree.root() == nullptr) return "";
  for (const auto& [key, value] : tree.root()->entries) {
    if (key->text == "kind" && value->kind == YamlNode::Kind::kScalar) return value->text;
  }
  return "";
}

}  // namespace llmctl::spec
