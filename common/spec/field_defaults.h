// The default_value of each field that was left out (proto/llmctl/v1/options.proto).
#pragma once

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace llmctl::spec {

// In this section and those below it. Sections that must be given are not made up, nor are those that mean something by
// being there (`stage`), nor items of lists.
void ApplyFieldDefaults(google::protobuf::Message& section);

}  // namespace llmctl::spec
