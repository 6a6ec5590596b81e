#include "worker/contract/picture.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace llmctl::contract {
namespace {

constexpr absl::string_view kMagic = "LLMPICT1";

// One description for both directions, as in json_fields.h: bytes with their length before them.
class Writer {
 public:
  void operator()(const std::string& text) {
    Number(text.size());
    bytes_.append(text);
  }
  void operator()(const int64_t& number) { Number(static_cast<uint64_t>(number)); }
  void operator()(const uint64_t& number) { Number(number); }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    Number(values.size());
    for (const T& value : values) Each(value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void Each(uint64_t number) { Number(number); }
  template <typename T>
  void Each(const T& value) {
    Visit(*this, value);
  }
  void Number(uint64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }

  std::string bytes_ = std::string(kMagic);
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {
    ok_ = bytes.substr(0, kMagic.size()) == kMagic;
    if (ok_) bytes_.remove_prefix(kMagic.size());
  }
  void operator()(std::string& text) {
    uint64_t size = Number();
    if (size > bytes_.size()) ok_ = false;
    if (!ok_) return;
    text.assign(bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  void operator()(int64_t& number) { number = static_cast<int64_t>(Number()); }
  void operator()(uint64_t& number) { number = Number(); }
  template <typename T>
  void operator()(std::vector<T>& values) {
    uint64_t count = Number();
    // Each value takes a number at least: a damaged count must not be believed.
    if (count > bytes_.size() / sizeof(uint64_t)) ok_ = false;
    for (uint64_t i = 0; ok_ && i < count; ++i) Each(values.emplace_back());
  }
  bool ok() const { return ok_; }

 private:
  void Each(uint64_t& number) { number = Number(); }
  template <typename T>
  void Each(T& value) {
    Visit(*this, value);
  }
  uint64_t Number() {
    uint64_t number = 0;
    if (bytes_.size() < sizeof number) ok_ = false;
    if (!ok_) return 0;
    std::memcpy(&number, bytes_.data(), sizeof number);
    bytes_.remove_prefix(sizeof number);
    return number;
  }

  absl::string_view bytes_;
  bool ok_;
};

template <typename V, typename T>
  requires std::is_same_v<std::remove_const_t<T>, ThreadPicture>
void Visit(V& visit, T& thread) {
  visit(thread.tid);
  visit(thread.name);
  visit(thread.state);
  visit(thread.kernel);
  visit(thread.note);
  visit(thread.registers);
  visit(thread.stack_address);
  visit(thread.stack);
}

template <typename V, typename P>
  requires std::is_same_v<std::remove_const_t<P>, Picture>
void Visit(V& visit, P& picture) {
  visit(picture.reason);
  visit(picture.nanoseconds);
  visit(picture.maps);
  visit(picture.threads);
}

}  // namespace

std::string EncodePicture(const Picture& picture) {
  Writer writer;
  Visit(writer, picture);
  return writer.Take();
}

absl::StatusOr<Picture> DecodePicture(absl::string_view bytes) {
  Picture picture;
  Reader reader(bytes);
  if (reader.ok()) Visit(reader, picture);
  if (!reader.ok()) return absl::DataLossError("not a picture of this version, or cut");
  return picture;
}

}  // namespace llmctl::contract
