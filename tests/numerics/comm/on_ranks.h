// Runs one function per rank, each on a thread of its own, and waits for all.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace llmctl::engine::comm {

inline void OnRanks(int size, const std::function<void(int)>& function) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(function, rank);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace llmctl::engine::comm
