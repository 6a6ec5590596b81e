// Reading a record's JSON blob field by field. The first fault is kept and ends up in one status; what follows
// it is not looked at. simdjson parses it: a start reads all records, and their parsing was most of it.
//
// A field that is absent keeps the default it has: that is how a blob of an older version reads as the present
// one. A field of the wrong type is damage.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <simdjson.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "coordinator/store/json_text.h"

namespace llmctl::store {

// Times are nanoseconds since 1970, durations nanoseconds; the infinite ones are null.
JsonText EncodeTime(absl::Time time);
JsonText EncodeDuration(absl::Duration duration);

// A value in a record's JSON, good for as long as the reader of the whole record.
using Json = simdjson::dom::element;

class FieldReader {
 public:
  // `what` names the record in messages ("job j-17").
  FieldReader(absl::string_view blob, std::string what);
  // Of an object within it.
  FieldReader(const Json& object, std::string what);
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;

  void Read(const char* name, std::string& out);
  void Read(const char* name, bool& out);
  void Read(const char* name, int& out);
  void Read(const char* name, int64_t& out);
  void Read(const char* name, double& out);
  void Read(const char* name, std::map<std::string, std::string>& out);
  void Read(const char* name, std::map<std::string, int>& out);
  // Null leaves a time at its default and reads as the infinite duration.
  void ReadTime(const char* name, absl::Time& out);
  void ReadDuration(const char* name, absl::Duration& out);
  // An enum stored by its name; `name_of` gives the name of each value from 0 to `last`.
  template <typename Enum>
  void ReadEnum(const char* name, Enum last, const char* (*name_of)(Enum), Enum& out) {
    std::string text;
    Read(name, text);
    if (!status_.ok() || !Find(name)) return;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      if (text == name_of(static_cast<Enum>(i))) {
        out = static_cast<Enum>(i);
        return;
      }
    }
    Fail(name, "a known name", "\"" + text + "\"");
  }

  // The blob's version must be 1 to `newest`. A newer one is FailedPrecondition: nothing is wrong with the record.
  void CheckVersion(int newest);
  // Calls read_item with each element of an array; its status becomes the reader's.
  void ForEach(const char* name, const std::function<absl::Status(const Json&)>& read_item);

  // The member, unless it is absent or null.
  std::optional<Json> Find(const char* name) const;
  void Fail(const char* name, absl::string_view expected, absl::string_view found);
  void Merge(const absl::Status& nested);
  const absl::Status& status() const { return status_; }

 private:
  void Open(const Json& value);
  std::optional<Json> FindAny(const char* name) const;

  std::unique_ptr<simdjson::dom::parser> parser_;  // holds the values; of the reader of a whole record
  simdjson::dom::object object_;
  std::string what_;
  absl::Status status_;
};

}  // namespace llmctl::store
