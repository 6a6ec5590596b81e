// What the real store makes of a crash: SQLite, on a disk that forgets, holds the records that the batch under way was
// to replace, dies inside that batch, and must recover them with all of it or with nothing of it.
//
// Most schedules keep their records as a value, for SQLite would take more time than all the rest; so that no crash
// goes without it, each is repeated here, from a new store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/store.h"
#include "simulator/crash_disk.h"
#include "simulator/dice.h"
#include "simulator/record_store.h"

namespace llmctl::simulator {

class CrashRehearsal {
 public:
  CrashRehearsal() : disk_("llm-simulator-rehearsal") {}
  CrashRehearsal(const CrashRehearsal&) = delete;
  CrashRehearsal& operator=(const CrashRehearsal&) = delete;

  // What is wrong, in words; empty when nothing.
  std::string Run(const RecordStore& all, const std::vector<store::Change>& batch, Dice& dice);

 private:
  absl::Status Open();
  void Drop();
  // An empty store that holds what `durable` does.
  absl::Status Begin(const RecordStore& durable);
  std::string Compare(const RecordStore& durable, const std::vector<store::Change>& batch, bool confirmed);

  CrashDisk disk_;
  std::unique_ptr<store::Store> store_;
  int64_t term_ = 0;
};

}  // namespace llmctl::simulator
