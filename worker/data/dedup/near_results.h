// Names and types of what the band tasks and the cluster task write.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "worker/data/dedup/near_dedup.h"
#include "worker/data/dedup/near_parts.h"
#include "worker/data/dedup/sorted_records.h"

namespace llmctl::data::near_result {

inline std::string BandFolder(const NearPlan& plan, int band) {
  return absl::StrFormat("%s/band-%04d", plan.folder, band);
}

inline RecordFileType BandType(const NearPlan& plan, const NearParts& parts, int band) {
  std::string what = absl::StrCat("pairs of band ", band, "; ", SignatureText(plan.settings));
  return {RecordKind::kPairs, sizeof(KeyedDocument), parts.input().DigestFor(what)};
}

inline std::string ClusterFolder(const NearPlan& plan) { return plan.folder + "/clusters"; }

inline RecordFileType PairType(const NearPlan& plan, const NearParts& parts) {
  return {RecordKind::kPairs, sizeof(KeyedDocument), parts.input().DigestFor("pairs; " + ClusterText(plan.settings))};
}

inline RecordFileType DuplicateType(const NearPlan& plan, const NearParts& parts) {
  return {RecordKind::kDuplicates, sizeof(Duplicate),
          parts.input().DigestFor("duplicates; " + ClusterText(plan.settings))};
}

inline RecordNotes NotesOf(const NearSummary& s) {
  return {s.documents, s.short_documents, s.clusters, s.clustered, s.removed, s.largest, s.candidates, s.pairs};
}

inline NearSummary SummaryOf(const RecordNotes& n) { return {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]}; }

}  // namespace llmctl::data::near_result
