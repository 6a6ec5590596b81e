#include "worker/data/normalize/repairs.h"

namespace llmctl::data {

Repairs& Repairs::operator+=(const Repairs& other) {
  invalid_utf8 += other.invalid_utf8;
  lone_surrogates += other.lone_surrogates;
  byte_order_marks += other.byte_order_marks;
  giants_split += other.giants_split;
  unusable_ids += other.unusable_ids;
  trailing_garbage += other.trailing_garbage;
  misnamed_files += other.misnamed_files;
  control_characters += other.control_characters;
  carriage_returns += other.carriage_returns;
  normalized_documents += other.normalized_documents;
  trimmed_documents += other.trimmed_documents;
  return *this;
}

}  // namespace llmctl::data
