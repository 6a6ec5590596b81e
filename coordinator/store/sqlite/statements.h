// The prepared statements of a commit. Parsing SQL would cost more than running it, so each is prepared once and
// bound to members here; hence none of these can move.
//
// SOCI throws soci::soci_error; sqlite_store.cc catches it at its door.
#pragma once

#include <string>

#include <soci/soci.h>

#include "coordinator/store/store.h"

namespace llmctl::store {

class Statements {
 public:
  explicit Statements(soci::session& session);
  Statements(const Statements&) = delete;
  Statements& operator=(const Statements&) = delete;

  long long Term();
  void Apply(const PutJob& change);
  void Apply(const EraseJob& change);
  void Apply(const PutNode& change);
  void Apply(const AppendEvent& change);
  void Apply(const PutCounters& change);
  // Rare: parsed each time.
  void Apply(const PutCrash& change);
  void Apply(const EraseCrash& change);
  void Apply(const PutDamaged& change);
  void Apply(const EraseDamaged& change);

 private:
  void SetCounter(const char* name, long long value);

  soci::session& session_;
  // Bound values.
  std::string id_, project_, name_, phase_, record_, key_, kind_, text_;
  long long sequence_ = 0, time_ns_ = 0, attempt_ = 0, generation_ = 0, value_ = 0;

  soci::statement read_term_;
  soci::statement put_job_;
  soci::statement put_submission_;
  soci::statement erase_job_;
  soci::statement erase_submission_;
  soci::statement erase_events_;
  soci::statement erase_damaged_;
  soci::statement put_node_;
  soci::statement append_event_;
  soci::statement put_counter_;
};

}  // namespace llmctl::store
