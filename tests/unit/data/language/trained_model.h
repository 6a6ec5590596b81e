// A model of a few languages, trained by the library in a second from the sentences below: what a user's model is, only
// small.
#pragma once

#include <string>

namespace llmctl::data {

// A sentence that no model was trained on, of "en", "de", "fr", "es" or "ru".
std::string SentenceIn(const std::string& language);

// The path of the model, trained once in this process; `quantized` as lid.176.ftz is.
const std::string& TrainedModel(bool quantized = false);

}  // namespace llmctl::data
