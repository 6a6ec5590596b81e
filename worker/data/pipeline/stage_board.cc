#include "worker/data/pipeline/stage_board.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <optional>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::data {

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

class StageBoard::SharedTasks : public TaskList {
 public:
  SharedTasks(Page& page, int stage, int tasks) : page_(page), state_(page.stages[stage]), tasks_(tasks) {}

  std::optional<int> Take() override {
    if (page_.failed) return std::nullopt;
    int task = state_.next++;
    return task < tasks_ ? std::optional<int>(task) : std::nullopt;
  }
  void Done(int) override { ++state_.done; }

 private:
  Page& page_;
  StageState& state_;
  const int tasks_;
};

absl::StatusOr<StageBoard::Page*> StageBoard::Map(int fd) {
  void* memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "map the page that the processes share");
  return static_cast<Page*>(memory);
}

absl::StatusOr<std::unique_ptr<StageBoard>> StageBoard::Create() {
  int fd = ::memfd_create("stages", 0);
  if (fd < 0) return ErrnoStatus(errno, "create the page that the processes share");
  if (::ftruncate(fd, sizeof(Page)) != 0) return ErrnoStatus(errno, "size the page that the processes share");
  LLM_ASSIGN_OR_RETURN(Page * page, Map(fd));
  new (page) Page;
  return std::unique_ptr<StageBoard>(new StageBoard(fd, page));
}

absl::StatusOr<std::unique_ptr<StageBoard>> StageBoard::Join(int fd) {
  LLM_ASSIGN_OR_RETURN(Page * page, Map(fd));
  return std::unique_ptr<StageBoard>(new StageBoard(fd, page));
}

StageBoard::~StageBoard() {
  ::munmap(page_, sizeof(Page));
  ::close(fd_);
}

std::unique_ptr<TaskList> StageBoard::Tasks(int stage, int tasks) {
  return std::make_unique<SharedTasks>(*page_, stage, tasks);
}

}  // namespace llmctl::data
