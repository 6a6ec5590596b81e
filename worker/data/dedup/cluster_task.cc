#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/dedup/document_set.h"
#include "worker/data/dedup/near_parts.h"
#include "worker/data/dedup/near_results.h"
#include "worker/data/dedup/pair_similarity.h"
#include "worker/data/dedup/sorted_records.h"
#include "worker/data/dedup/union_find.h"

namespace llmctl::data {
namespace {

class ClusterTask {
 public:
  ClusterTask(const NearPlan& plan, NearParts parts, const TaskResources& resources)
      : plan_(plan),
        parts_(std::move(parts)),
        resources_(resources),
        folder_(near_result::ClusterFolder(plan)),
        type_(near_result::DuplicateType(plan, parts_)) {
    summary_.documents = parts_.input().documents();
    summary_.short_documents = parts_.input().without_signature();
  }

  absl::StatusOr<NearSummary> Run() {
    absl::StatusOr<RecordFile> done = RecordFile::Open(*resources_.files, Path(), type_);
    if (done.ok()) return near_result::SummaryOf(done->notes());
    LLM_RETURN_IF_ERROR(resources_.files->RemoveFolder(folder_));
    LLM_RETURN_IF_ERROR(CheckMemory(0));
    DocumentSet paired(parts_.input().documents());
    LLM_RETURN_IF_ERROR(CollectPairs(paired));
    uint64_t members = paired.Number();
    LLM_RETURN_IF_ERROR(CheckMemory(members));
    if (members < std::numeric_limits<uint32_t>::max()) {
      LLM_RETURN_IF_ERROR(Cluster<uint32_t>(paired, members));
    } else {
      LLM_RETURN_IF_ERROR(Cluster<uint64_t>(paired, members));
    }
    LLM_RETURN_IF_ERROR(resources_.files->RemoveFolder(folder_ + "/merged"));
    return summary_;
  }

 private:
  // Per member: parent, first match, size of its cluster.
  template <typename Index>
  struct Clusters {
    explicit Clusters(uint64_t members)
        : sets(members), match(members, std::numeric_limits<Index>::max()), sizes(members) {}

    UnionFind<Index> sets;
    std::vector<Index> match;
    std::vector<Index> sizes;
  };

  std::string Path() const { return folder_ + "/duplicates"; }

  absl::Status CheckMemory(uint64_t members) const {
    uint64_t index_bytes = members < std::numeric_limits<uint32_t>::max() ? 4 : 8;
    uint64_t needed = DocumentSet::BytesFor(parts_.input().documents()) + members * 3 * index_bytes;
    if (needed <= resources_.memory_bytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("cluster near duplicates: ", parts_.input().documents(), " documents, ", members,
                     " of them in pairs, need ", needed, " bytes, but the task was given ",
                     resources_.memory_bytes));
  }

  // The distinct pairs of all bands that pass the check, and who is in one.
  absl::Status CollectPairs(DocumentSet& paired) {
    std::vector<SortedRun> runs;
    for (int band = 0; band < BandTasks(plan_.settings); ++band) {
      RecordFileType type = near_result::BandType(plan_, parts_, band);
      std::string path = near_result::BandFolder(plan_, band) + "/pairs";
      absl::Status there = RecordFile::Open(*resources_.files, path, type).status();
      if (absl::IsNotFound(there)) {
        return absl::FailedPreconditionError(absl::StrCat("cluster near duplicates: band task ", band, " of ",
                                                          BandTasks(plan_.settings), " is not finished; run it first (",
                                                          there.message(), ")"));
      }
      LLM_RETURN_IF_ERROR(there);
      // Their documents are numbers of the whole input already.
      runs.push_back({path, type, 0, 0, 0});
    }
    RecordFileType type = near_result::PairType(plan_, parts_);
    LLM_ASSIGN_OR_RETURN(RecordFileWriter out,
                         RecordFileWriter::Create(*resources_.files, folder_ + "/merged/pairs", type));
    PairSimilarity similarity(plan_, parts_);
    std::optional<KeyedDocument> before;
    const uint64_t taken = DocumentSet::BytesFor(parts_.input().documents());
    const TaskResources rest{resources_.files, std::max(kTaskMemoryMin, resources_.memory_bytes - taken)};
    auto take = [&](const KeyedDocument& pair) -> absl::Status {
      if (before == pair) return absl::OkStatus();
      before = pair;
      ++summary_.candidates;
      if (plan_.settings.jaccard_min) {
        LLM_ASSIGN_OR_RETURN(double jaccard, similarity.Of(pair.key, pair.document));
        if (jaccard < *plan_.settings.jaccard_min) return absl::OkStatus();
      }
      ++summary_.pairs;
      paired.Insert(pair.key);
      paired.Insert(pair.document);
      return out.Append(&pair, 1);
    };
    LLM_RETURN_IF_ERROR(MergeRuns<KeyedDocument>({rest, folder_ + "/merged", type}, std::move(runs), take));
    return out.Commit({}).status();
  }

  template <typename Index>
  absl::Status Cluster(const DocumentSet& paired, uint64_t members) {
    Clusters<Index> clusters(members);
    LLM_RETURN_IF_ERROR(Join(paired, clusters));
    for (uint64_t member = 0; member < members; ++member) ++clusters.sizes[clusters.sets.Find(member)];
    for (uint64_t member = 0; member < members; ++member) {
      if (clusters.sizes[member] == 0) continue;
      ++summary_.clusters;
      summary_.clustered += clusters.sizes[member];
      summary_.largest = std::max<uint64_t>(summary_.largest, clusters.sizes[member]);
    }
    summary_.removed = summary_.clustered - summary_.clusters;
    return Write(paired, clusters);
  }

  template <typename Index>
  absl::Status Join(const DocumentSet& paired, Clusters<Index>& clusters) {
    LLM_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(*resources_.files, folder_ + "/merged/pairs",
                                                           near_result::PairType(plan_, parts_)));
    SectionReader reader(file, 0);
    std::vector<KeyedDocument> block(1024);
    while (true) {
      LLM_ASSIGN_OR_RETURN(uint64_t read, reader.Read(block.data(), block.size()));
      if (read == 0) return absl::OkStatus();
      for (uint64_t i = 0; i < read; ++i) {
        Index later = paired.NumberOf(block[i].key);
        Index earlier = paired.NumberOf(block[i].document);
        clusters.sets.Join(later, earlier);
        clusters.match[later] = std::min(clusters.match[later], earlier);
        clusters.match[earlier] = std::min(clusters.match[earlier], later);
      }
    }
  }

  // Members are numbered in the order of their documents: a second walk over them turns numbers back into documents.
  template <typename Index>
  absl::Status Write(const DocumentSet& paired, Clusters<Index>& clusters) {
    LLM_ASSIGN_OR_RETURN(RecordFileWriter out, RecordFileWriter::Create(*resources_.files, Path(), type_));
    PairSimilarity similarity(plan_, parts_);
    Index member = 0;
    const uint64_t end = parts_.input().documents();
    for (uint64_t document = paired.Next(0); document < end; document = paired.Next(document + 1)) {
      Index kept = clusters.sets.Find(member);
      Index match = clusters.match[member];
      if (kept != member++) {
        Duplicate duplicate{document, paired.MemberAt(kept), paired.MemberAt(match), 0, 0};
        LLM_ASSIGN_OR_RETURN(double to_kept, similarity.Of(document, duplicate.kept));
        LLM_ASSIGN_OR_RETURN(double to_match, duplicate.match == duplicate.kept
                                                  ? absl::StatusOr<double>(to_kept)
                                                  : similarity.Of(document, duplicate.match));
        duplicate.kept_jaccard = static_cast<float>(to_kept);
        duplicate.match_jaccard = static_cast<float>(to_match);
        LLM_RETURN_IF_ERROR(out.Append(&duplicate, 1));
      }
    }
    return out.Commit(near_result::NotesOf(summary_)).status();
  }

  const NearPlan& plan_;
  NearParts parts_;
  const TaskResources resources_;
  const std::string folder_;
  const RecordFileType type_;
  NearSummary summary_;
};

}  // namespace

absl::StatusOr<NearSummary> RunClusterTask(const NearPlan& plan, const TaskResources& resources) {
  LLM_RETURN_IF_ERROR(Validate(resources));
  LLM_ASSIGN_OR_RETURN(NearParts parts, NearParts::Open(plan, *resources.files));
  return ClusterTask(plan, std::move(parts), resources).Run();
}

}  // namespace llmctl::data
