#include "common/spec/digest.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/spec/validate.h"

namespace llmctl::spec {

std::string SpecDigest(const v1::JobSpec& spec) {
  v1::JobSpec resolved = spec;
  ApplyDefaults(resolved);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    CHECK(resolved.SerializeToCodedStream(&coded)) << "a specification has no required fields of proto2";
  }
  return Sha256(bytes);
}

}  // namespace llmctl::spec
