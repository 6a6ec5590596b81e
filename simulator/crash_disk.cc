#include "simulator/crash_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"

#include "common/base/check.h"

namespace llmctl::simulator {
namespace {

constexpr int kSector = 512;

CrashDisk* DiskOf(sqlite3_vfs* vfs) { return static_cast<CrashDisk*>(vfs->pAppData); }

}  // namespace

CrashDisk::CrashDisk(std::string name) : name_(std::move(name)) {
  // Time, chance and shared libraries are the system's: SQLite uses them for nothing that outlives the process.
  sqlite3_vfs* system = sqlite3_vfs_find(nullptr);
  CHECK(system != nullptr) << "SQLite has no default VFS";
  vfs_ = *system;
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(Handle);
  vfs_.pNext = nullptr;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = &Open;
  vfs_.xDelete = &Delete;
  vfs_.xAccess = &Access;
  vfs_.xFullPathname = &FullPathname;
  CHECK_EQ(sqlite3_vfs_register(&vfs_, 0), SQLITE_OK) << "register " << name_;
}

CrashDisk::~CrashDisk() { sqlite3_vfs_unregister(&vfs_); }

void CrashDisk::Put(std::string& content, const Write& write) {
  if (write.truncates) {
    content.resize(write.offset);
    return;
  }
  size_t end = write.offset + write.bytes.size();
  if (content.size() < end) content.resize(end);
  std::copy(write.bytes.begin(), write.bytes.end(), content.begin() + write.offset);
}

int CrashDisk::Spend(const Handle* handle) {
  if (dead_ || (handle != nullptr && handle->life != life_)) return SQLITE_IOERR;
  if (operations_left_.has_value() && (*operations_left_)-- <= 0) {
    operations_left_.reset();
    dead_ = true;
    return SQLITE_IOERR;
  }
  return SQLITE_OK;
}

void CrashDisk::SyncFolder() {
  for (auto& [path, file] : files_) {
    file.exists_durably = file.exists;
    if (!file.exists) file.durable.clear();
  }
}

CrashDisk::Image CrashDisk::Save() const {
  Image image;
  for (const auto& [path, file] : files_) {
    if (file.exists) image[path] = file.seen;
  }
  return image;
}

void CrashDisk::Restore(const Image& image) {
  files_.clear();
  for (const auto& [path, content] : image) {
    files_[path] = {.durable = content, .seen = content, .unsynced = {}, .exists = true, .exists_durably = true};
  }
  dead_ = full_ = false;
  operations_left_.reset();
  ++life_;
}

CrashDisk::Damage CrashDisk::Revive(bool power_lost, Dice& dice) {
  Damage damage;
  dead_ = false;
  full_ = false;
  operations_left_.reset();
  ++life_;
  for (auto& [path, file] : files_) {
    if (!power_lost) continue;
    for (Write& write : file.unsynced) {
      if (dice.Happens(0.3)) {
        ++damage.dropped;
        continue;
      }
      if (!write.truncates && write.bytes.size() > kSector && dice.Happens(0.3)) {
        ++damage.torn;
        write.bytes.resize(kSector * (1 + dice.Pick(static_cast<int>(write.bytes.size() - 1) / kSector)));
      }
      Put(file.durable, write);
    }
    file.unsynced.clear();
    file.seen = file.durable;
    file.exists = file.exists_durably;
  }
  return damage;
}

int CrashDisk::Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* base, int flags, int* flags_out) {
  CrashDisk* disk = DiskOf(vfs);
  Handle* handle = From(base);
  handle->base.pMethods = nullptr;
  if (disk->dead_) return SQLITE_CANTOPEN;
  CHECK(path != nullptr) << "the store uses no temporary files";
  File& file = disk->files_[path];
  if (!file.exists && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
  file.exists = true;
  handle->disk = disk;
  handle->file = &file;
  handle->life = disk->life_;
  handle->delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  handle->base.pMethods = &Methods();
  if (flags_out != nullptr) *flags_out = flags;
  return SQLITE_OK;
}

int CrashDisk::Delete(sqlite3_vfs* vfs, const char* path, int sync) {
  CrashDisk* disk = DiskOf(vfs);
  if (int error = disk->Spend(nullptr); error != SQLITE_OK) return error;
  File& file = disk->files_[path];
  if (!file.exists) return SQLITE_IOERR_DELETE_NOENT;
  file.exists = false;
  file.seen.clear();
  file.unsynced.clear();
  // Without a sync of the folder the old file may come back.
  if (sync != 0) disk->SyncFolder();
  return SQLITE_OK;
}

int CrashDisk::Access(sqlite3_vfs* vfs, const char* path, int, int* result) {
  CrashDisk* disk = DiskOf(vfs);
  auto found = disk->files_.find(path);
  *result = found != disk->files_.end() && found->second.exists;
  return SQLITE_OK;
}

int CrashDisk::FullPathname(sqlite3_vfs*, const char* path, int size, char* out) {
  size_t length = std::strlen(path);
  if (length + 1 > static_cast<size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, path, length + 1);
  return SQLITE_OK;
}

int CrashDisk::Close(sqlite3_file* base) {
  Handle* handle = From(base);
  if (handle->delete_on_close && handle->life == handle->disk->life_) handle->file->exists = false;
  return SQLITE_OK;
}

int CrashDisk::Read(sqlite3_file* base, void* out, int size, sqlite3_int64 offset) {
  Handle* handle = From(base);
  if (handle->disk->dead_ || handle->life != handle->disk->life_) return SQLITE_IOERR_READ;
  const std::string& content = handle->file->seen;
  absl::string_view there = offset < static_cast<int64_t>(content.size())
                                ? absl::string_view(content).substr(offset, size)
                                : absl::string_view();
  char* end = std::copy(there.begin(), there.end(), static_cast<char*>(out));
  if (there.size() == static_cast<size_t>(size)) return SQLITE_OK;
  std::fill(end, static_cast<char*>(out) + size, '\0');
  return SQLITE_IOERR_SHORT_READ;
}

int CrashDisk::WriteAt(sqlite3_file* base, const void* data, int size, sqlite3_int64 offset) {
  Handle* handle = From(base);
  if (handle->disk->Spend(handle) != SQLITE_OK) return SQLITE_IOERR_WRITE;
  if (handle->disk->full_) return SQLITE_FULL;
  Write write{.offset = offset, .bytes = std::string(static_cast<const char*>(data), size)};
  Put(handle->file->seen, write);
  handle->file->unsynced.push_back(std::move(write));
  return SQLITE_OK;
}

int CrashDisk::Truncate(sqlite3_file* base, sqlite3_int64 size) {
  Handle* handle = From(base);
  if (handle->disk->Spend(handle) != SQLITE_OK) return SQLITE_IOERR_TRUNCATE;
  Write write{.offset = size, .truncates = true};
  Put(handle->file->seen, write);
  handle->file->unsynced.push_back(std::move(write));
  return SQLITE_OK;
}

int CrashDisk::Sync(sqlite3_file* base, int) {
  Handle* handle = From(base);
  if (handle->disk->Spend(handle) != SQLITE_OK) return SQLITE_IOERR_FSYNC;
  File& file = *handle->file;
  for (const Write& write : file.unsynced) Put(file.durable, write);
  file.unsynced.clear();
  // With the first sync of a new file SQLite syncs the folder.
  if (!file.exists_durably) handle->disk->SyncFolder();
  return SQLITE_OK;
}

int CrashDisk::Size(sqlite3_file* base, sqlite3_int64* size) {
  Handle* handle = From(base);
  if (handle->disk->dead_ || handle->life != handle->disk->life_) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(handle->file->seen.size());
  return SQLITE_OK;
}

int CrashDisk::Lock(sqlite3_file*, int) { return SQLITE_OK; }

int CrashDisk::CheckReserved(sqlite3_file*, int* result) {
  *result = 0;
  return SQLITE_OK;
}

int CrashDisk::Control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }

int CrashDisk::SectorSize(sqlite3_file*) { return kSector; }

int CrashDisk::Characteristics(sqlite3_file*) { return 0; }

const sqlite3_io_methods& CrashDisk::Methods() {
  // Version 1: no shared memory, no memory mapping.
  static const sqlite3_io_methods methods = [] {
    sqlite3_io_methods m{};
    m.iVersion = 1;
    m.xClose = &Close;
    m.xRead = &Read;
    m.xWrite = &WriteAt;
    m.xTruncate = &Truncate;
    m.xSync = &Sync;
    m.xFileSize = &Size;
    m.xLock = &Lock;
    m.xUnlock = &Lock;
    m.xCheckReservedLock = &CheckReserved;
    m.xFileControl = &Control;
    m.xSectorSize = &SectorSize;
    m.xDeviceCharacteristics = &Characteristics;
    return m;
  }();
  return methods;
}

}  // namespace llmctl::simulator
