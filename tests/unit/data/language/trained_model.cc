#include "tests/unit/data/language/trained_model.h"

#include <map>
#include <vector>

#include <fasttext/fasttext.h>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::data {
namespace {

const std::map<std::string, std::vector<std::string>>& Sentences() {
  static const auto* const sentences = new std::map<std::string, std::vector<std::string>>{
      {"en",
       {"The ship leaves the harbour early in the morning", "She reads a book about the history of the town",
        "We would like to know what the weather is like", "There are many birds on the roof of this house",
        "He does not think that they will be here before noon"}},
      {"de",
       {"Das Schiff verlässt den Hafen am frühen Morgen", "Sie liest ein Buch über die Geschichte der Stadt",
        "Wir möchten wissen, wie das Wetter wird", "Auf dem Dach dieses Hauses sitzen viele Vögel",
        "Er glaubt nicht, dass sie vor Mittag hier sein werden"}},
      {"fr",
       {"Le bateau quitte le port tôt le matin", "Elle lit un livre sur l'histoire de la ville",
        "Nous voudrions savoir quel temps il fera", "Il y a beaucoup d'oiseaux sur le toit de cette maison",
        "Il ne pense pas qu'ils seront ici avant midi"}},
      {"es",
       {"El barco sale del puerto por la mañana temprano", "Ella lee un libro sobre la historia de la ciudad",
        "Nos gustaría saber qué tiempo va a hacer", "Hay muchos pájaros en el tejado de esta casa",
        "Él no cree que vayan a estar aquí antes del mediodía"}},
      {"ru",
       {"Корабль выходит из порта рано утром", "Она читает книгу об истории города",
        "Мы хотели бы знать, какая будет погода", "На крыше этого дома сидит много птиц",
        "Он не думает, что они будут здесь до полудня"}},
  };
  return *sentences;
}

std::string Train(const std::string& folder, bool quantized) {
  std::string text;
  for (int round = 0; round < 20; ++round) {
    for (const auto& [language, sentences] : Sentences()) {
      for (const std::string& sentence : sentences) absl::StrAppend(&text, "__label__", language, " ", sentence, "\n");
    }
  }
  fasttext::Args args;
  args.input = folder + "/sentences";
  CHECK(WriteFileAtomically(args.input, text).ok());
  args.model = fasttext::model_name::sup;
  args.loss = fasttext::loss_name::softmax;
  args.dim = 8;
  args.minn = 2;
  args.maxn = 3;
  args.bucket = 2000;
  args.epoch = 20;
  args.lr = 0.5;
  args.thread = 1;
  args.verbose = 0;
  fasttext::FastText model;
  model.train(args);
  if (quantized) {
    args.cutoff = 600;
    args.dsub = 2;
    args.qnorm = true;
    model.quantize(args);
  }
  std::string path = absl::StrCat(folder, quantized ? "/model.ftz" : "/model.bin");
  model.saveModel(path);
  return path;
}

}  // namespace

std::string SentenceIn(const std::string& language) {
  static const auto* const sentences = new std::map<std::string, std::string>{
      {"en", "They think that the weather will be fine when the birds leave the town"},
      {"de", "Sie glauben, dass das Wetter schön wird, wenn die Vögel die Stadt verlassen"},
      {"fr", "Ils pensent que le temps sera beau quand les oiseaux quitteront la ville"},
      {"es", "Ellos creen que hará buen tiempo cuando los pájaros salgan de la ciudad"},
      {"ru", "Они думают, что погода будет хорошая, когда птицы уйдут из города"},
  };
  return sentences->at(language);
}

const std::string& TrainedModel(bool quantized) {
  static const TemporaryDirectory folder;
  static const auto* const plain = new std::string(Train(folder.path(), false));
  if (!quantized) return *plain;
  static const auto* const small = new std::string(Train(folder.path(), true));
  return *small;
}

}  // namespace llmctl::data
