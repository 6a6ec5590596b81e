// A disk for SQLite (an sqlite3_vfs) that forgets what was not synced.
//
// Files live in memory: what is durable, and behind it the writes since the last sync, which every reader sees. When
// the power goes, each of those is kept, dropped or torn at a sector, each by chance: exactly what fsync(2) leaves
// open. When only the process dies they stay. It can also run full, and die after so many more operations: then
// everything that is open fails until the files are opened anew.
//
// For one connection at a time that holds the file exclusively, as the store does: no locks, no shared memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "simulator/dice.h"

namespace llmctl::simulator {

class CrashDisk {
 public:
  // `name`: under which SQLite finds it.
  explicit CrashDisk(std::string name);
  ~CrashDisk();
  CrashDisk(const CrashDisk&) = delete;
  CrashDisk& operator=(const CrashDisk&) = delete;

  const std::string& name() const { return name_; }

  void set_full(bool full) { full_ = full; }
  // Writes, truncations, removals and syncs count.
  void DieAfter(int operations) { operations_left_ = operations; }
  void SpareLife() { operations_left_.reset(); }
  bool dead() const { return dead_; }
  // Everything that is open fails from now on.
  void Die() { dead_ = true; }
  struct Damage {
    int dropped = 0;
    int torn = 0;
  };
  // What there is, all of it durable; nothing may be open.
  using Image = std::map<std::string, std::string>;
  Image Save() const;
  // As it was then, and in order.
  void Restore(const Image& image);
  // Files can be opened again, with what has survived.
  Damage Revive(bool power_lost, Dice& dice);

 private:
  struct Write {
    int64_t offset = 0;
    std::string bytes;
    bool truncates = false;  // to `offset`
  };
  struct File {
    std::string durable;
    std::string seen;  // with the writes that are not durable yet
    std::vector<Write> unsynced;
    bool exists = false;          // seen
    bool exists_durably = false;  // its name has been synced
  };
  // What SQLite holds of an open file.
  struct Handle {
    sqlite3_file base;
    CrashDisk* disk;
    File* file;
    int64_t life;
    bool delete_on_close;
  };

  static void Put(std::string& content, const Write& write);
  // What files there are is durable.
  void SyncFolder();
  // Whether the operation may go on: SQLITE_OK, or the error.
  int Spend(const Handle* handle);
  static Handle* From(sqlite3_file* file) { return reinterpret_cast<Handle*>(file); }
  static const sqlite3_io_methods& Methods();

  static int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out);
  static int Delete(sqlite3_vfs* vfs, const char* path, int sync);
  static int Access(sqlite3_vfs* vfs, const char* path, int flags, int* result);
  static int FullPathname(sqlite3_vfs* vfs, const char* path, int size, char* out);
  static int Close(sqlite3_file* file);
  static int Read(sqlite3_file* file, void* out, int size, sqlite3_int64 offset);
  static int WriteAt(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset);
  static int Truncate(sqlite3_file* file, sqlite3_int64 size);
  static int Sync(sqlite3_file* file, int flags);
  static int Size(sqlite3_file* file, sqlite3_int64* size);
  static int Lock(sqlite3_file* file, int level);
  static int CheckReserved(sqlite3_file* file, int* result);
  static int Control(sqlite3_file* file, int operation, void* argument);
  static int SectorSize(sqlite3_file* file);
  static int Characteristics(sqlite3_file* file);

  const std::string name_;
  sqlite3_vfs vfs_{};
  std::map<std::string, File> files_;
  int64_t life_ = 1;
  bool dead_ = false;
  bool full_ = false;
  std::optional<int> operations_left_;
};

}  // namespace llmctl::simulator
