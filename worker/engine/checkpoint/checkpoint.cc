#include "worker/engine/checkpoint/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/engine/checkpoint/directory.h"

namespace llmctl::checkpoint {
namespace {

absl::Status PrepareDirectory(const std::string& directory, const std::string& path) {
  LLM_RETURN_IF_ERROR(MakeDirectoriesDurably(directory));
  if (::access(absl::StrCat(path, "/", kManifestName).c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(absl::StrCat("save checkpoint ", path, ": it has been saved already"));
  }
  LLM_RETURN_IF_ERROR(RemoveCheckpoint(directory, path));
  return MakeDirectories(path);
}

std::vector<TensorView> Views(const std::vector<Slice>& slices) {
  std::vector<TensorView> views;
  for (const Slice& slice : slices) {
    CHECK_GT(BoxElements(slice.box), 0) << "tensor " << slice.tensor << " is empty";
    views.push_back({FormatSliceName(slice.tensor, slice.box), slice.type, BoxShape(slice.box), slice.data});
  }
  return views;
}

absl::Status SaveFiles(const std::string& path, const std::map<std::string, std::vector<Slice>>& files,
                       Manifest& manifest) {
  for (const auto& [name, slices] : files) {
    CHECK(IsTensorFileName(name)) << name;
    std::vector<TensorView> views = Views(slices);
    LLM_ASSIGN_OR_RETURN(WrittenFile written,
                         WriteSafetensors(absl::StrCat(path, "/", name), views, {{"format", "pt"}}));
    manifest.files[name] = {written.bytes, written.checksum};
    for (size_t i = 0; i < views.size(); ++i) {
      bool added =
          manifest.tensors.emplace(views[i].name, TensorRecord{name, views[i].type, written.tensors[i].checksum})
              .second;
      CHECK(added) << "slice " << views[i].name << " is in two files";
    }
  }
  return absl::OkStatus();
}

absl::Status Damaged(absl::string_view file, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("file ", file, ": ", what));
}

}  // namespace

absl::StatusOr<Saved> Save(const std::string& directory, Manifest manifest,
                           const std::map<std::string, std::vector<Slice>>& files) {
  CHECK_EQ(manifest.consumed_samples, manifest.ledger.next_sample()) << "the ledger is the count of samples";
  std::string path =
      absl::StrCat(directory, "/", FormatCheckpointName({manifest.step, manifest.attempt, manifest.generation}));
  LLM_RETURN_IF_ERROR(PrepareDirectory(directory, path));
  absl::Status saved = SaveFiles(path, files, manifest);
  std::string json = EncodeManifest(manifest);
  if (saved.ok()) saved = WriteFileAtomically(absl::StrCat(path, "/", kManifestName), json);
  if (saved.ok()) saved = SyncDirectory(directory);
  if (!saved.ok()) {
    // Room for the next try; what cannot be removed has no manifest and is no checkpoint.
    RemoveCheckpoint(directory, path).IgnoreError();
    return Annotate(saved, "save checkpoint ", path);
  }
  Saved out{path, ManifestDigest(json), 0};
  for (const auto& [name, file] : manifest.files) out.bytes += file.bytes;
  return out;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(const std::string& path,
                                                                         const std::string& manifest_digest) {
  std::string context = absl::StrCat("load checkpoint ", path);
  absl::StatusOr<std::string> json = ReadFile(absl::StrCat(path, "/", kManifestName));
  if (!json.ok()) return Annotate(json.status(), context, " (a checkpoint without a manifest was never finished)");
  if (!manifest_digest.empty() && ManifestDigest(*json) != manifest_digest) {
    return absl::DataLossError(absl::StrCat(context, ": ", kManifestName, " has digest ", ManifestDigest(*json),
                                            ", the commit says ", manifest_digest));
  }
  absl::StatusOr<Manifest> manifest = DecodeManifest(*json);
  if (!manifest.ok()) return Annotate(absl::DataLossError(manifest.status().message()), context);
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader(path, *std::move(manifest)));
  for (const auto& [name, record] : reader->manifest_.files) {
    LLM_RETURN_IF_ERROR(Annotate(reader->OpenFile(name, record), context));
  }
  size_t found = 0;
  for (const auto& [tensor, slices] : reader->slices_) found += slices.size();
  if (found != reader->manifest_.tensors.size()) {
    return absl::DataLossError(absl::StrCat(context, ": the manifest lists ", reader->manifest_.tensors.size(),
                                            " tensor slices, the files hold ", found));
  }
  return reader;
}

absl::Status CheckpointReader::OpenFile(const std::string& name, const FileRecord& record) {
  std::string path = absl::StrCat(path_, "/", name);
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Damaged(name, "is missing") : ErrnoStatus(errno, absl::StrCat("look at ", path));
  }
  if (info.st_size != record.bytes) {
    return Damaged(name, absl::StrCat("has ", info.st_size, " bytes, the manifest says ", record.bytes));
  }
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsReader> file, SafetensorsReader::Open(path));
  std::string checksum = Checksum128(file->content());
  LLM_RETURN_IF_ERROR(IndexFile(name, *file));
  if (checksum == record.checksum) {
    files_.push_back(std::move(file));
    return absl::OkStatus();
  }
  for (const TensorEntry& entry : file->tensors()) {
    std::string found = Checksum128(file->TensorBytes(entry));
    const std::string& expected = manifest_.tensors.at(entry.name).checksum;
    if (found != expected) {
      return Damaged(name, absl::StrCat("tensor ", entry.name, " has checksum ", found, ", expected ", expected));
    }
  }
  return Damaged(name, absl::StrCat("has checksum ", checksum, ", expected ", record.checksum,
                                    "; its tensors are whole,", " its header or the manifest is damaged"));
}

absl::Status CheckpointReader::IndexFile(const std::string& name, const SafetensorsReader& file) {
  for (const TensorEntry& entry : file.tensors()) {
    auto record = manifest_.tensors.find(entry.name);
    if (record == manifest_.tensors.end() || record->second.file != name) {
      return Damaged(name, absl::StrCat("holds tensor ", entry.name, ", which the manifest does not place there"));
    }
    LLM_ASSIGN_OR_RETURN(SliceName slice, ParseSliceName(entry.name));
    if (entry.type != record->second.type || entry.shape != BoxShape(slice.box)) {
      return Damaged(name, absl::StrCat("tensor ", entry.name, " has another type or shape than its name or manifest"));
    }
    std::vector<StoredSlice>& slices = slices_[slice.tensor];
    for (const StoredSlice& other : slices) {
      Box common;
      if (slice.box.size() != other.box.size() || slice.box.empty() || Intersect(slice.box, other.box, common)) {
        return Damaged(name, absl::StrCat("tensor slices ", entry.name, " and ", other.name, " overlap"));
      }
    }
    slices.push_back({entry.name, std::move(slice.box), entry.type, file.TensorBytes(entry)});
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckTarget(const SliceTarget& target) const {
  std::string name = FormatSliceName(target.tensor, target.box);
  auto slices = slices_.find(target.tensor);
  if (slices == slices_.end()) {
    return absl::DataLossError(absl::StrCat("load checkpoint ", path_, ": tensor ", target.tensor, " is not in it"));
  }
  int64_t covered = 0;
  for (const StoredSlice& slice : slices->second) {
    Box common;
    if (!Intersect(slice.box, target.box, common)) continue;
    covered += BoxElements(common);
    if (slice.type == target.type) continue;
    return absl::DataLossError(absl::StrCat("load checkpoint ", path_, ": tensor ", name, " is stored as ",
                                            DataTypeName(slice.type), ", expected ", DataTypeName(target.type)));
  }
  if (covered == BoxElements(target.box)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("load checkpoint ", path_, ": of tensor ", name, " only ", covered, " of ",
                                          BoxElements(target.box), " elements are in it; stored is ",
                                          slices->second.front().name, slices->second.size() > 1 ? " and others" : ""));
}

absl::Status CheckpointReader::Load(absl::Span<const SliceTarget> targets) const {
  for (const SliceTarget& target : targets) LLM_RETURN_IF_ERROR(CheckTarget(target));
  for (const SliceTarget& target : targets) {
    for (const StoredSlice& slice : slices_.at(target.tensor)) {
      CopyCommon({slice.box, slice.bytes.data()}, {target.box, static_cast<char*>(target.data)},
                 ElementBytes(target.type));
    }
  }
  return absl::OkStatus();
}

}  // namespace llmctl::checkpoint
