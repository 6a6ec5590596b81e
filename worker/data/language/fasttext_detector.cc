#include "worker/data/language/fasttext_detector.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <sstream>
#include <utility>

#include <fasttext/fasttext.h>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/data/language/fasttext_model_check.h"
#include "worker/data/language/language_label.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kLabelPrefix = "__label__";
// What a scratch remembers: words up to a length, until their rows are so many.
constexpr size_t kRememberedWordBytesMax = 32;
constexpr size_t kRememberedRowsMax = size_t{1} << 20;
constexpr size_t kRememberedWordsMax = size_t{1} << 16;

// What separates words for the library; a line feed, which ends its line, is a space here.
bool IsSeparator(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }

// What the library lets only its own classes call.
class Dictionary : public fasttext::Dictionary {
 public:
  static void AddWordGrams(const fasttext::Dictionary& dictionary, std::vector<int32_t>& rows,
                           const std::vector<int32_t>& hashes, int32_t n) {
    (dictionary.*&Dictionary::addWordNgrams)(rows, hashes, n);
  }
};

class Library : public fasttext::FastText {
 public:
  // The format's version is a member that only checkModel sets.
  bool Load(std::istream& in) {
    if (!checkModel(in)) return false;
    loadModel(in);
    return true;
  }
};

}  // namespace

class FastTextDetector::Model {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& bytes) {
    LLM_RETURN_IF_ERROR(CheckFastTextModel(bytes));
    auto model = std::make_unique<Model>();
    std::istringstream in(bytes);
    try {
      if (!model->library_.Load(in)) return absl::InvalidArgumentError("the library does not know the format");
    } catch (const std::exception& error) {  // memory
      return absl::ResourceExhaustedError(absl::StrCat("the library fails: ", error.what()));
    }
    model->dictionary_ = model->library_.getDictionary();
    model->word_grams_ = model->library_.getArgs().wordNgrams;
    for (int32_t i = 0; i < model->dictionary_->nlabels(); ++i) {
      std::string name = model->dictionary_->getLabel(i);
      model->labels_.push_back(LanguageLabel(absl::StripPrefix(name, kLabelPrefix)));
    }
    if (int32_t end = model->dictionary_->getId(fasttext::Dictionary::EOS); end >= 0) {
      model->end_rows_ = model->dictionary_->getSubwords(end);
    }
    return model;
  }

  const std::vector<std::string>& labels() const { return labels_; }
  const fasttext::Dictionary& dictionary() const { return *dictionary_; }
  int32_t word_grams() const { return word_grams_; }
  const std::vector<int32_t>& end_rows() const { return end_rows_; }

  void Predict(const std::vector<int32_t>& rows, fasttext::Predictions& predictions) const {
    predictions.clear();
    library_.predict(/*k=*/2, rows, predictions);
  }

 private:
  Library library_;
  std::shared_ptr<const fasttext::Dictionary> dictionary_;
  int32_t word_grams_ = 0;
  std::vector<std::string> labels_;
  std::vector<int32_t> end_rows_;
};

class FastTextDetector::Scratch : public LanguageScratch {
 public:
  // The rows of a text and its end, in the library's order; empty if no word of it has any.
  const std::vector<int32_t>& RowsOf(absl::string_view text, const Model& model) {
    rows_.clear();
    hashes_.clear();
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      while (end < text.size() && !IsSeparator(text[end])) ++end;
      if (end > at) AddWord(text.substr(at, end - at), model.dictionary());
      at = end + 1;
    }
    if (rows_.empty()) return rows_;
    rows_.insert(rows_.end(), model.end_rows().begin(), model.end_rows().end());
    if (model.word_grams() > 1) {
      hashes_.push_back(model.dictionary().hash(fasttext::Dictionary::EOS));
      Dictionary::AddWordGrams(model.dictionary(), rows_, hashes_, model.word_grams());
    }
    return rows_;
  }

  fasttext::Predictions& predictions() { return predictions_; }

 private:
  struct Word {
    size_t begin = 0;  // of its rows among the remembered ones
    size_t end = 0;
    uint32_t hash = 0;
    bool is_label = false;
  };

  void AddWord(absl::string_view text, const fasttext::Dictionary& dictionary) {
    if (text.size() > kRememberedWordBytesMax) {
      ReadWord(text, dictionary, long_word_rows_);
      Add(word_, long_word_rows_.begin(), long_word_rows_.end());
      return;
    }
    auto at = words_.find(text);
    if (at == words_.end()) {
      if (remembered_rows_.size() > kRememberedRowsMax || words_.size() >= kRememberedWordsMax) {
        words_.clear();
        remembered_rows_.clear();
      }
      ReadWord(text, dictionary, long_word_rows_);
      word_.begin = remembered_rows_.size();
      remembered_rows_.insert(remembered_rows_.end(), long_word_rows_.begin(), long_word_rows_.end());
      word_.end = remembered_rows_.size();
      at = words_.emplace(text, word_).first;
    }
    const Word& word = at->second;
    Add(word, remembered_rows_.begin() + word.begin, remembered_rows_.begin() + word.end);
  }

  using Rows = std::vector<int32_t>::const_iterator;
  void Add(const Word& word, Rows begin, Rows end) {
    if (word.is_label) return;
    rows_.insert(rows_.end(), begin, end);
    hashes_.push_back(static_cast<int32_t>(word.hash));
  }

  void ReadWord(absl::string_view text, const fasttext::Dictionary& dictionary, std::vector<int32_t>& rows) {
    spelling_.assign(text.data(), text.size());
    rows.clear();
    word_ = {};
    word_.hash = dictionary.hash(spelling_);
    int32_t id = dictionary.getId(spelling_, word_.hash);
    fasttext::entry_type type = id < 0 ? dictionary.getType(spelling_) : dictionary.getType(id);
    word_.is_label = type == fasttext::entry_type::label || spelling_ == fasttext::Dictionary::EOS;
    if (word_.is_label) return;
    if (id >= 0) {
      rows = dictionary.getSubwords(id);
    } else {
      dictionary.computeSubwords(absl::StrCat(fasttext::Dictionary::BOW, spelling_, fasttext::Dictionary::EOW), rows);
    }
  }

  absl::flat_hash_map<std::string, Word> words_;
  std::vector<int32_t> remembered_rows_;
  std::vector<int32_t> rows_;
  std::vector<int32_t> hashes_;
  std::vector<int32_t> long_word_rows_;
  Word word_;
  std::string spelling_;
  fasttext::Predictions predictions_;
};

FastTextDetector::FastTextDetector(const LanguageSettings& settings, std::unique_ptr<Model> model, std::string digest)
    : LanguageDetector(settings, absl::StrCat("fasttext sha256:", digest)), model_(std::move(model)) {}

FastTextDetector::~FastTextDetector() = default;

absl::StatusOr<std::unique_ptr<FastTextDetector>> FastTextDetector::Load(const LanguageSettings& settings) {
  absl::StatusOr<std::string> bytes = ReadFile(settings.model_file);
  if (!bytes.ok()) return Annotate(bytes.status(), "language: model_file");
  return Make(settings, *bytes);
}

absl::StatusOr<std::unique_ptr<FastTextDetector>> FastTextDetector::Make(const LanguageSettings& settings,
                                                                         const std::string& model) {
  absl::StatusOr<std::unique_ptr<Model>> loaded = Model::Load(model);
  if (!loaded.ok()) return Annotate(loaded.status(), "language: model_file ", settings.model_file);
  return std::unique_ptr<FastTextDetector>(new FastTextDetector(settings, *std::move(loaded), Sha256(model)));
}

std::vector<std::string> FastTextDetector::Labels() const {
  std::vector<std::string> out;
  for (const std::string& label : model_->labels()) {
    if (!IsLanguageIn(label, kUnknownLanguage)) out.push_back(label);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::unique_ptr<LanguageScratch> FastTextDetector::MakeScratch() const { return std::make_unique<Scratch>(); }

LanguageGuess FastTextDetector::DetectSample(absl::string_view sample, LanguageScratch& scratch) const {
  Scratch& own = static_cast<Scratch&>(scratch);
  const std::vector<int32_t>& rows = own.RowsOf(sample, *model_);
  LanguageGuess guess{kUnknownLanguage, 0, {}, 0};
  if (rows.empty()) return guess;
  fasttext::Predictions& predictions = own.predictions();
  model_->Predict(rows, predictions);
  // The logarithm is of the probability and 1e-5.
  auto score = [](const auto& prediction) { return std::min(1.0, std::exp(double{prediction.first})); };
  if (!predictions.empty()) {
    guess.label = model_->labels()[predictions[0].second];
    guess.score = score(predictions[0]);
  }
  if (predictions.size() > 1) {
    guess.second = model_->labels()[predictions[1].second];
    guess.second_score = score(predictions[1]);
  }
  return guess;
}

}  // namespace llmctl::data
