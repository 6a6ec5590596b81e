// Whole deduplication runs for tests: texts cut into parts in any way, tasks in any order and on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "worker/data/dedup/exact_dedup.h"
#include "worker/data/dedup/near_dedup.h"

namespace llmctl::data {

constexpr uint64_t kPlenty = 64 << 20;

// Made-up words: as many different texts as one likes.
class TextMaker {
 public:
  explicit TextMaker(uint64_t seed) : rng_(seed) {}

  std::string Word() {
    std::string word;
    for (uint64_t i = 1 + rng_.Below(3); i > 0; --i) {
      word += "bcdfghklmnprstvwz"[rng_.Below(17)];
      word += "aeiou"[rng_.Below(5)];
      if (rng_.Below(3) == 0) word += "lnrst"[rng_.Below(5)];
    }
    return word;
  }

  std::string Text(int words) {
    std::string text;
    for (int i = 0; i < words; ++i) text += (i == 0 ? "" : " ") + Word();
    return text;
  }

  // `text` with some of its words replaced.
  std::string Changed(const std::string& text, int changes) {
    std::vector<std::string> words = {""};
    for (char c : text) {
      if (c == ' ') {
        words.emplace_back();
      } else {
        words.back() += c;
      }
    }
    for (int i = 0; i < changes; ++i) words[rng_.Below(words.size())] = Word();
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
    return out;
  }

  SeededRng& rng() { return rng_; }

 private:
  SeededRng rng_;
};

// The texts of each part: [0, cuts[0]), [cuts[0], cuts[1]), ...
inline std::vector<std::vector<std::string>> Cut(const std::vector<std::string>& texts, std::vector<size_t> cuts) {
  cuts.push_back(texts.size());
  std::vector<std::vector<std::string>> parts;
  size_t from = 0;
  for (size_t cut : cuts) {
    parts.emplace_back(texts.begin() + from, texts.begin() + cut);
    from = cut;
  }
  return parts;
}

// Calls task(0) to task(count - 1) on some threads; the first fault of all.
inline absl::Status RunTasks(int count, int threads, const std::function<absl::Status(int)>& task) {
  std::vector<absl::Status> results(count);
  std::atomic<int> next = 0;
  auto work = [&] {
    for (int i = next++; i < count; i = next++) results[i] = task(i);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (const absl::Status& result : results) {
    if (!result.ok()) return result;
  }
  return absl::OkStatus();
}

template <typename Task>
absl::Status Feed(absl::StatusOr<std::unique_ptr<Task>> task, const std::vector<std::string>& texts) {
  if (!task.ok()) return task.status();
  if ((*task)->done()) return absl::OkStatus();
  for (const std::string& text : texts) {
    if (absl::Status added = (*task)->Add(text); !added.ok()) return added;
  }
  return (*task)->Finish();
}

inline std::vector<std::string> DigestsFor(const std::vector<std::vector<std::string>>& parts) {
  std::vector<std::string> digests;
  for (size_t i = 0; i < parts.size(); ++i) digests.push_back("part of " + std::to_string(parts[i].size()));
  return digests;
}

struct RunOptions {
  TaskResources resources;
  int threads = 1;
};

inline absl::StatusOr<NearSummary> RunNear(const NearPlan& plan, const std::vector<std::vector<std::string>>& parts,
                                           const RunOptions& options) {
  absl::StatusOr<std::unique_ptr<Signer>> signer = Signer::Make(plan.settings);
  if (!signer.ok()) return signer.status();
  absl::Status signatures = RunTasks(static_cast<int>(parts.size()), options.threads, [&](int part) {
    return Feed(SignatureTask::Open(plan, part, **signer, options.resources), parts[part]);
  });
  if (!signatures.ok()) return signatures;
  absl::Status bands = RunTasks(BandTasks(plan.settings), options.threads,
                                [&](int band) { return RunBandTask(plan, band, options.resources); });
  if (!bands.ok()) return bands;
  return RunClusterTask(plan, options.resources);
}

inline absl::StatusOr<ExactSummary> RunExact(const ExactPlan& plan, const std::vector<std::vector<std::string>>& parts,
                                             const RunOptions& options) {
  absl::Status keys = RunTasks(static_cast<int>(parts.size()), options.threads, [&](int part) {
    return Feed(KeyTask::Open(plan, part, options.resources), parts[part]);
  });
  if (!keys.ok()) return keys;
  absl::Status ranges = RunTasks(kRangeTasks, options.threads,
                                 [&](int range) { return RunRangeTask(plan, range, options.resources); });
  if (!ranges.ok()) return ranges;
  return RunRepeatTask(plan, options.resources);
}

// The bytes of a file.
inline std::string BytesOf(SpillFiles& files, const std::string& path) {
  absl::StatusOr<std::unique_ptr<SpillReader>> file = files.Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return "";
  std::string bytes((*file)->size(), ' ');
  EXPECT_TRUE((*file)->ReadAt(0, bytes.data(), bytes.size()).ok());
  return bytes;
}

// The bytes of the results: the same for the same texts, however they were made.
inline std::string ResultOf(const NearPlan& plan, SpillFiles& files) {
  return BytesOf(files, plan.folder + "/clusters/duplicates");
}
inline std::string ResultOf(const ExactPlan& plan, SpillFiles& files) {
  return BytesOf(files, plan.folder + "/repeats/repeats");
}

}  // namespace llmctl::data
