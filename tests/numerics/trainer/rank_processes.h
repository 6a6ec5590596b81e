// Ranks as real llm-trainer processes, with a thread each that plays shim, agent and coordinator: assignment,
// rendezvous store, commits.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/mutex.h"
#include "tests/unit/trainer/shim_end.h"
#include "worker/contract/trainer_config.h"

namespace llmctl::trainer {

// Starts the program with `arguments` and, unless negative, `link_fd` as its line to a shim.
inline pid_t Spawn(std::vector<std::string> arguments, int link_fd) {
  constexpr int kLinkFd = 3;
  arguments.insert(arguments.begin(), LLM_TRAINER);
  std::vector<std::string> environment = {"OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=passive"};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (link_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, link_fd, kLinkFd);
    environment.push_back("LLMCTL_SHIM_FD=3");
  }
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& variable : environment) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, LLM_TRAINER, &actions, nullptr, argv.data(), envp.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// As waitpid says it: an exit code, or minus the signal.
inline int AwaitExit(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

class RankProcesses {
 public:
  struct Rank {
    ShimEnd shim;
    pid_t pid = -1;
    int exit = 0;
    int64_t step = 0;  // the newest it has reported; under mutex_
    std::vector<double> losses;
    std::string fatal_class;
    std::thread agent;
  };
  // Called on the rank's thread after each of its steps.
  using OnStep = std::function<void(Rank& rank, int number, int64_t step)>;

  RankProcesses(const contract::TrainerConfig& config, OnStep on_step) : on_step_(std::move(on_step)) {
    for (int i = 0; i < config.data_parallel; ++i) {
      std::string directory = RankDirectory(config, i);
      std::string path = directory + "/trainer.json";
      EXPECT_TRUE(MakeDirectories(directory).ok());
      EXPECT_TRUE(WriteFileAtomically(path, contract::EncodeTrainerConfig(config)).ok());
      ranks_.push_back(std::make_unique<Rank>());
      ranks_.back()->pid = Spawn({"train", "--config", path}, ranks_.back()->shim.trainer_fd());
      ranks_.back()->shim.CloseTrainerEnd();
    }
    for (int i = 0; i < config.data_parallel; ++i) ranks_[i]->agent = std::thread([this, i] { Serve(i); });
  }
  ~RankProcesses() { Await(); }

  static std::string RankDirectory(const contract::TrainerConfig& config, int number) {
    return config.checkpoint.directory + "/rank-" + std::to_string(number);
  }
  pid_t pid(int number) const { return ranks_[number]->pid; }

  // Waits until a rank has reported `step` or a later one.
  void AwaitStep(int number, int64_t step) {
    MutexLock lock(mutex_);
    while (ranks_[number]->step < step) stepped_.Wait(mutex_);
  }
  void Say(int number, contract::Message message) {
    MutexLock lock(mutex_);
    ranks_[number]->shim.Say(std::move(message));
  }

  // Waits until a rank has ended.
  Rank& Await(int number) {
    Rank& rank = *ranks_[number];
    if (rank.agent.joinable()) {
      rank.agent.join();
      rank.exit = AwaitExit(rank.pid);
    }
    return rank;
  }
  // Waits until all have.
  std::vector<std::unique_ptr<Rank>>& Await() {
    for (size_t i = 0; i < ranks_.size(); ++i) Await(static_cast<int>(i));
    return ranks_;
  }

 private:
  void Serve(int number) {
    Rank& rank = *ranks_[number];
    contract::Assignment assignment = {.generation = {JobId("j-1"), 1, 1}, .rank = number};
    assignment.world_size = static_cast<int>(ranks_.size());
    for (int i = 0; i < assignment.world_size; ++i) assignment.rank_table.push_back({i, "node", "127.0.0.1"});
    rank.shim.SayHello();
    rank.shim.Say(assignment);
    while (auto envelope = rank.shim.Hear()) {
      if (const auto* request = std::get_if<contract::StoreRequest>(&envelope->message)) Answer(rank, *request);
      if (const auto* progress = std::get_if<contract::Progress>(&envelope->message)) {
        rank.losses.push_back(progress->loss);
        Reached(rank, progress->step);
        on_step_(rank, number, progress->step);
      }
      if (const auto* commit = std::get_if<contract::CheckpointCommit>(&envelope->message)) {
        Say(number, contract::CheckpointCommitReply{.request_id = commit->request_id, .committed = true});
      }
      if (const auto* fatal = std::get_if<contract::Fatal>(&envelope->message)) {
        rank.fatal_class = fatal->failure_class;
      }
    }
  }

  void Reached(Rank& rank, int64_t step) {
    MutexLock lock(mutex_);
    rank.step = step;
    stepped_.NotifyAll();
  }

  void Answer(Rank& rank, const contract::StoreRequest& request) {
    MutexLock lock(mutex_);
    contract::StoreReply reply = {.request_id = request.request_id};
    auto it = values_.find(request.key);
    reply.found = it != values_.end();
    switch (request.operation) {
      case contract::StoreOperation::kGet:
      case contract::StoreOperation::kWait:
        if (!reply.found && request.operation == contract::StoreOperation::kWait) {
          waiting_[request.key].push_back({&rank, reply});
          return;
        }
        if (reply.found) reply.value = it->second;
        break;
      case contract::StoreOperation::kSet:
        values_[request.key] = request.value;
        break;
      case contract::StoreOperation::kAdd:
        reply.number = (reply.found ? std::stoll(it->second) : 0) + request.amount;
        values_[request.key] = std::to_string(reply.number);
        break;
      case contract::StoreOperation::kCompareSet:
        if ((reply.found ? it->second : "") == request.expected) values_[request.key] = request.value;
        reply.value = values_[request.key];
        break;
      case contract::StoreOperation::kDelete:
        values_.erase(request.key);
        break;
    }
    rank.shim.Say(reply);
    if (values_.count(request.key) == 0) return;
    for (auto& [waiter, late] : waiting_[request.key]) {
      late.found = true;
      late.value = values_[request.key];
      waiter->shim.Say(late);
    }
    waiting_.erase(request.key);
  }

  OnStep on_step_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Mutex mutex_;
  CondVar stepped_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::pair<Rank*, contract::StoreReply>>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::trainer
