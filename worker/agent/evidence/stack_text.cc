#include "worker/agent/evidence/stack_text.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <elfutils/libdwfl.h>
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace llmctl::agent {
namespace {

constexpr size_t kFramesMax = 64;
// A template's full name can fill a page; its beginning tells which it is.
constexpr size_t kNameMax = 160;

using contract::ThreadPicture;

// What libdwfl asks for, answered from the picture.
class PictureProcess {
 public:
  explicit PictureProcess(const contract::Picture& picture) : picture_(picture) {}

  static pid_t NextThread(Dwfl*, void* self, void** thread) {
    const std::vector<ThreadPicture>& threads = static_cast<PictureProcess*>(self)->picture_.threads;
    size_t index = *thread == nullptr ? 0 : static_cast<const ThreadPicture*>(*thread) - threads.data() + 1;
    if (index >= threads.size()) return 0;
    *thread = const_cast<ThreadPicture*>(&threads[index]);
    return static_cast<pid_t>(threads[index].tid);
  }
  static bool ThreadOf(Dwfl*, pid_t tid, void* self, void** thread) {
    for (const ThreadPicture& candidate : static_cast<PictureProcess*>(self)->picture_.threads) {
      if (candidate.tid != tid) continue;
      *thread = const_cast<ThreadPicture*>(&candidate);
      return true;
    }
    return false;
  }
  static bool ReadWord(Dwfl*, Dwarf_Addr address, Dwarf_Word* out, void* self) {
    for (const ThreadPicture& thread : static_cast<PictureProcess*>(self)->picture_.threads) {
      if (address < thread.stack_address) continue;
      uint64_t offset = address - thread.stack_address;
      if (offset + sizeof *out > thread.stack.size()) continue;
      std::memcpy(out, thread.stack.data() + offset, sizeof *out);
      return true;
    }
    return false;
  }
  static bool SetRegisters(Dwfl_Thread* into, void* thread) {
    const std::vector<uint64_t>& registers = static_cast<const ThreadPicture*>(thread)->registers;
    std::vector<Dwarf_Word> words(registers.begin(), registers.end());
    dwfl_thread_state_register_pc(into, words.back());
    return dwfl_thread_state_registers(into, 0, static_cast<unsigned>(words.size() - 1), words.data());
  }

 private:
  const contract::Picture& picture_;
};

constexpr Dwfl_Thread_Callbacks kThreadCallbacks = {.next_thread = PictureProcess::NextThread,
                                                    .get_thread = PictureProcess::ThreadOf,
                                                    .memory_read = PictureProcess::ReadWord,
                                                    .set_initial_registers = PictureProcess::SetRegisters,
                                                    .detach = nullptr,
                                                    .thread_detach = nullptr};

constexpr Dwfl_Callbacks kFileCallbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                           // There is no debug information beside the programs, and looking for it
                                           // could go over the network.
                                           .find_debuginfo = [](auto...) { return -1; },
                                           .section_address = dwfl_offline_section_address,
                                           .debuginfo_path = nullptr};

std::string ReadableName(const char* symbol) {
  int status = 0;
  char* readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : symbol;
  std::free(readable);
  if (name.size() > kNameMax) name = absl::StrCat(name.substr(0, kNameMax), "...");
  return name;
}

struct FrameList {
  Dwfl* dwfl;
  std::vector<std::string> lines;
};

int AddFrame(Dwfl_Frame* frame, void* argument) {
  FrameList& list = *static_cast<FrameList*>(argument);
  Dwarf_Addr pc = 0;
  bool activation = false;
  if (!dwfl_frame_pc(frame, &pc, &activation)) return DWARF_CB_ABORT;
  // A return address may lie behind the last instruction of the function that called.
  Dwarf_Addr inside = activation ? pc : pc - 1;
  Dwfl_Module* module = dwfl_addrmodule(list.dwfl, inside);
  const char* path = module == nullptr
                         ? "?"
                         : dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  const char* symbol = module == nullptr ? nullptr : dwfl_module_addrname(module, inside);
  std::string name = symbol == nullptr ? absl::StrFormat("%#x", pc) : ReadableName(symbol);
  const char* file = std::strrchr(path, '/');
  list.lines.push_back(absl::StrFormat("  #%-2d %s  %s", list.lines.size(), name, file == nullptr ? path : file + 1));
  return list.lines.size() < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

const char* StateText(const std::string& state) {
  if (state == "R") return "running";
  if (state == "S") return "sleeping";
  if (state == "D") return "in uninterruptible sleep";
  if (state == "T" || state == "t") return "stopped";
  if (state == "Z") return "ended";
  return "in an unknown state";
}

std::string Heading(const ThreadPicture& thread) {
  return absl::StrCat("thread ", thread.tid, " ", thread.name, ": ", StateText(thread.state),
                      thread.kernel.empty() ? "" : absl::StrCat(" in ", thread.kernel),
                      thread.note.empty() ? "" : absl::StrCat("; no stack: ", thread.note), "\n");
}

// Null if the mapped files cannot be understood.
struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
std::unique_ptr<Dwfl, EndDwfl> OpenPicture(const contract::Picture& picture, PictureProcess& process) {
  std::unique_ptr<Dwfl, EndDwfl> dwfl(dwfl_begin(&kFileCallbacks));
  if (dwfl == nullptr || picture.threads.empty()) return nullptr;
  std::FILE* maps = ::fmemopen(const_cast<char*>(picture.maps.data()), picture.maps.size(), "r");
  if (maps == nullptr) return nullptr;
  bool reported = dwfl_linux_proc_maps_report(dwfl.get(), maps) == 0;
  std::fclose(maps);
  if (!reported || dwfl_report_end(dwfl.get(), nullptr, nullptr) != 0) return nullptr;
  pid_t pid = static_cast<pid_t>(picture.threads.front().tid);
  if (!dwfl_attach_state(dwfl.get(), nullptr, pid, &kThreadCallbacks, &process)) return nullptr;
  return dwfl;
}

}  // namespace

std::string StackText(const contract::Picture& original) {
  contract::Picture picture = original;
  std::sort(picture.threads.begin(), picture.threads.end(),
            [](const ThreadPicture& a, const ThreadPicture& b) { return a.tid < b.tid; });
  PictureProcess process(picture);
  std::unique_ptr<Dwfl, EndDwfl> dwfl = OpenPicture(picture, process);
  std::string text = absl::StrCat("taken because: ", picture.reason, "\n");
  for (const ThreadPicture& thread : picture.threads) {
    absl::StrAppend(&text, "\n", Heading(thread));
    if (thread.registers.empty()) continue;
    FrameList frames = {.dwfl = dwfl.get()};
    if (dwfl != nullptr) dwfl_getthread_frames(dwfl.get(), static_cast<pid_t>(thread.tid), AddFrame, &frames);
    if (frames.lines.empty()) frames.lines.push_back(absl::StrFormat("  #0  %#x  ?", thread.registers.back()));
    for (const std::string& line : frames.lines) absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace llmctl::agent
