// What a verb works with: the cluster and where its output goes.
#pragma once

#include <ostream>
#include <string>

#include "client/cluster/cluster.h"
#include "llmctl/v1/jobs.pb.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace llmctl::client {

enum class Format { kTable, kJson, kYaml };

struct Session {
  Cluster& cluster;
  std::ostream& out;  // results
  std::ostream& err;  // everything else
  Format format = Format::kTable;
  bool terminal = false;  // `out` is watched by a person
  int columns = 80;

  // Prints the message as the format wants it; false for kTable, where the verb has a text of its own.
  bool PrintStructured(const google::protobuf::Message& message) const;
};

}  // namespace llmctl::client
