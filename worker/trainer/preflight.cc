#include "worker/trainer/preflight.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <c10/core/InferenceMode.h>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "worker/engine/comm/gloo.h"
#include "worker/engine/comm/memory_store.h"
#include "worker/engine/kernels/gemm.h"

namespace llmctl::trainer {
namespace {

using contract::PreflightCheck;
using engine::kernels::Matrix;

constexpr int64_t kMatrixSize = 384;
constexpr int kProducts = 20;
constexpr int64_t kMemoryBytesMost = int64_t{64} << 20;
// Of what is free: others live here too.
constexpr int64_t kMemoryShare = 8;
constexpr int kRanksMost = 8;
constexpr int64_t kReducedNumbers = 1 << 18;
constexpr int kReductions = 5;
constexpr absl::Duration kGroupPatience = absl::Seconds(60);
constexpr size_t kFileBytes = size_t{32} << 20;
constexpr int64_t kFreeBytesLeast = int64_t{128} << 20;

class Stopwatch {
 public:
  double Seconds() const { return absl::ToDoubleSeconds(Now().monotonic - begin_); }

 private:
  absl::Duration begin_ = Now().monotonic;
};

PreflightCheck Pass(PreflightCheck check) {
  check.outcome = "passed";
  return check;
}

PreflightCheck Fail(PreflightCheck check, std::string detail) {
  check.outcome = "failed";
  check.detail = std::move(detail);
  return check;
}

// Small whole numbers: sums of their products are exact in fp32, in whatever order they are taken.
std::vector<float> WholeNumbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(static_cast<int64_t>((i * 2654435761 + seed * 40503) >> 7) % 9 - 4);
  }
  return numbers;
}

std::vector<float> PlainProduct(const std::vector<float>& a, const std::vector<float>& b, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n * n), 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      float factor = a[i * n + k];
      for (int64_t j = 0; j < n; ++j) out[i * n + j] += factor * b[k * n + j];
    }
  }
  return out;
}

// Every word another, and in the second round each bit the other way round.
uint64_t Pattern(uint64_t index, uint64_t flip) { return (index * 0x9E3779B97F4A7C15u) ^ flip; }

std::string FindWrongWord(const std::vector<uint64_t>& words, uint64_t flip) {
  for (size_t i = 0; i < words.size(); ++i) {
    uint64_t expected = Pattern(i, flip);
    if (words[i] == expected) continue;
    return absl::StrCat("word ", i, " of ", words.size(), ": wrote ", absl::Hex(expected), ", read ",
                        absl::Hex(words[i]));
  }
  return "";
}

int64_t FreeMemoryShare() {
  int64_t free = int64_t{::sysconf(_SC_AVPHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return std::clamp(free / kMemoryShare, int64_t{1} << 20, kMemoryBytesMost);
}

// One rank's part. The value of rank r at element i is r + i mod 7.
absl::Status ReduceAsRank(engine::comm::MemoryStore& store, int rank, int size) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<engine::comm::Backend> backend,
                       engine::comm::CreateGlooBackend({.store = &store,
                                                        .group = "preflight",
                                                        .rank = rank,
                                                        .size = size,
                                                        .fabric_address = "127.0.0.1",
                                                        .form_timeout = kGroupPatience,
                                                        .timeout = kGroupPatience}));
  std::vector<float> values(kReducedNumbers);
  for (int round = 0; round < kReductions; ++round) {
    for (int64_t i = 0; i < kReducedNumbers; ++i) values[i] = static_cast<float>(rank + i % 7);
    LLM_RETURN_IF_ERROR(backend->Run(engine::comm::Op::kAllReduceSum,
                                     {values.data(), kReducedNumbers, engine::comm::DataType::kFloat32}, 0));
    for (int64_t i = 0; i < kReducedNumbers; ++i) {
      auto expected = static_cast<float>(size * (size - 1) / 2 + size * (i % 7));
      if (values[i] == expected) continue;
      return absl::DataLossError(
          absl::StrCat("rank ", rank, ", element ", i, ": expected ", expected, ", found ", values[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteAndReadBack(const std::string& path, const std::string& content) {
  LLM_RETURN_IF_ERROR(WriteFileAtomically(path, content));
  {
    // What is still in memory would only test memory.
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.valid()) ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  LLM_ASSIGN_OR_RETURN(std::string back, ReadFile(path));
  if (Fingerprint64(back) == Fingerprint64(content)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": what was read is not what was written"));
}

absl::Status CheckFreeSpace(const std::string& directory) {
  struct statvfs space = {};
  if (::statvfs(directory.c_str(), &space) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", directory));
  auto free = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
  if (free >= kFreeBytesLeast) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(directory, " has only ", free >> 20, " MiB free, expected ", kFreeBytesLeast >> 20));
}

}  // namespace

contract::PreflightCheck CheckMatmul() {
  PreflightCheck check{.name = "matmul", .unit = "GFLOP/s"};
  Stopwatch whole;
  std::vector<float> a = WholeNumbers(kMatrixSize * kMatrixSize, 1);
  std::vector<float> b = WholeNumbers(kMatrixSize * kMatrixSize, 2);
  const std::vector<float> expected = PlainProduct(a, b, kMatrixSize);
  std::vector<float> out(expected.size());
  c10::InferenceMode inference;
  Matrix left(a.data(), kMatrixSize, kMatrixSize), right(b.data(), kMatrixSize, kMatrixSize);
  Matrix product(out.data(), kMatrixSize, kMatrixSize);
  double best = 0;
  for (int i = 0; i < kProducts; ++i) {
    std::fill(out.begin(), out.end(), 0.0f);
    Stopwatch one;
    engine::kernels::Multiply(left, right, product, /*add=*/false);
    best = std::max(best, 2.0 * kMatrixSize * kMatrixSize * kMatrixSize / one.Seconds() / 1e9);
    auto wrong = std::mismatch(out.begin(), out.end(), expected.begin());
    if (wrong.first == out.end()) continue;
    return Fail(std::move(check), absl::StrCat("product ", i, ", element ", wrong.first - out.begin(), ": expected ",
                                               *wrong.second, ", found ", *wrong.first));
  }
  check.seconds = whole.Seconds();
  check.value = best;
  return Pass(std::move(check));
}

contract::PreflightCheck CheckMemory(int64_t bytes) {
  PreflightCheck check{.name = "memory", .unit = "GB/s"};
  Stopwatch watch;
  std::vector<uint64_t> words(static_cast<size_t>(bytes) / sizeof(uint64_t));
  for (uint64_t flip : {uint64_t{0}, ~uint64_t{0}}) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = Pattern(i, flip);
    if (std::string wrong = FindWrongWord(words, flip); !wrong.empty()) return Fail(std::move(check), wrong);
  }
  check.seconds = watch.Seconds();
  check.value = 4.0 * static_cast<double>(bytes) / check.seconds / 1e9;
  check.detail = absl::StrCat(bytes >> 20, " MiB");
  return Pass(std::move(check));
}

contract::PreflightCheck CheckAllReduce(int devices) {
  PreflightCheck check{.name = "all-reduce", .unit = "MB/s"};
  int size = std::clamp(devices, 2, kRanksMost);
  Stopwatch watch;
  engine::comm::MemoryStore store;
  std::vector<absl::Status> outcomes(static_cast<size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&store, &outcomes, rank, size] {
      outcomes[rank] = ReduceAsRank(store, rank, size);
      // The others wait for a rank that will not come.
      if (!outcomes[rank].ok()) store.Cancel("another rank of the pre-flight failed");
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const absl::Status& outcome : outcomes) {
    if (!outcome.ok()) return Fail(std::move(check), std::string(outcome.message()));
  }
  check.seconds = watch.Seconds();
  check.value = 1.0 * kReductions * kReducedNumbers * sizeof(float) / check.seconds / 1e6;
  check.detail = absl::StrCat(size, " ranks");
  return Pass(std::move(check));
}

contract::PreflightCheck CheckDisk(const std::string& directory) {
  PreflightCheck check{.name = "disk", .unit = "MB/s"};
  Stopwatch watch;
  if (absl::Status space = CheckFreeSpace(directory); !space.ok()) {
    return Fail(std::move(check), std::string(space.message()));
  }
  std::string content(kFileBytes, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(Pattern(i, 0) >> 56);
  std::string path = absl::StrCat(directory, "/preflight-", ::getpid());
  absl::Status status = WriteAndReadBack(path, content);
  ::unlink(path.c_str());
  if (!status.ok()) return Fail(std::move(check), std::string(status.message()));
  check.seconds = watch.Seconds();
  check.value = 2.0 * kFileBytes / check.seconds / 1e6;
  check.detail = directory;
  return Pass(std::move(check));
}

contract::Preflight RunPreflight(const PreflightOptions& options) {
  std::vector<PreflightCheck> checks;
  if (options.device_kind != "cpu") {
    checks.push_back({.name = "devices",
                      .outcome = "skipped",
                      .detail = absl::StrCat("this llm-trainer computes on CPUs: the ", options.devices,
                                             " devices of kind ", options.device_kind, " were not tested")});
  }
  checks.push_back(CheckMatmul());
  checks.push_back(CheckMemory(FreeMemoryShare()));
  checks.push_back(CheckAllReduce(options.devices));
  checks.push_back(CheckDisk(options.directory));
  return contract::Summarize(std::move(checks));
}

}  // namespace llmctl::trainer
