#include "coordinator/rpc/admin_service.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/observe/log.h"
#include "coordinator/rpc/grpc_status.h"
#include "coordinator/rpc/job_mapping.h"
#include "coordinator/rpc/link_mapping.h"

namespace llmctl::rpc {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// Sends one backup, once it is made.
class BackupReactor final : public grpc::ServerWriteReactor<v1::BackupPiece> {
 public:
  // A call that is refused at once.
  explicit BackupReactor(const absl::Status& refusal) {
    if (!refusal.ok()) Finish(ToGrpc(refusal));
  }

  // The file's name is given up: it goes with the call. Nothing of the reactor may be touched after this.
  void Send(const std::string& path) {
    file_.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    int error = errno;
    ::unlink(path.c_str());
    if (!file_.valid()) return Refuse(ErrnoStatus(error, absl::StrCat("open backup ", path)));
    SendPiece();
  }
  void Refuse(const absl::Status& status) { Finish(ToGrpc(status)); }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    SendPiece();
  }
  void OnDone() override { delete this; }

 private:
  void SendPiece() {
    std::string& data = *piece_.mutable_data();
    data.resize(kPieceBytes);
    ssize_t bytes = ::read(file_.get(), data.data(), data.size());
    if (bytes < 0) return Finish(ToGrpc(ErrnoStatus(errno, "read the backup")));
    if (bytes == 0) return Finish(grpc::Status::OK);
    data.resize(bytes);
    StartWrite(&piece_);
  }

  UniqueFd file_;
  v1::BackupPiece piece_;
};

}  // namespace

// Makes backups, one at a time: a call's own thread must not wait for the disk.
class AdminService::BackupThread {
 public:
  BackupThread(runtime::Runtime& runtime, std::string path)
      : runtime_(runtime), path_(std::move(path)), thread_([this] { Run(); }) {}
  ~BackupThread() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyOne();
    }
    thread_.join();
  }

  BackupReactor* Begin() {
    MutexLock lock(mutex_);
    if (busy_) return new BackupReactor(absl::ResourceExhaustedError("another backup is being made: try again later"));
    busy_ = true;
    next_ = new BackupReactor(absl::OkStatus());
    changed_.NotifyOne();
    return next_;
  }

 private:
  void Run() {
    while (true) {
      BackupReactor* reactor = nullptr;
      {
        MutexLock lock(mutex_);
        while (next_ == nullptr && !stopping_) changed_.Wait(mutex_);
        if (next_ == nullptr) return;
        reactor = std::exchange(next_, nullptr);
      }
      absl::Status made = runtime_.Backup(path_);
      Log(made.ok() ? LogLevel::kInfo : LogLevel::kError, "backup-made", {{"outcome", made.ToString()}});
      if (made.ok()) {
        reactor->Send(path_);
      } else {
        reactor->Refuse(made);
      }
      MutexLock lock(mutex_);
      busy_ = false;
    }
  }

  runtime::Runtime& runtime_;
  const std::string path_;

  Mutex mutex_;
  CondVar changed_;
  BackupReactor* next_ ABSL_GUARDED_BY(mutex_) = nullptr;  // gRPC's
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: runs on the fields above
};

AdminService::AdminService(runtime::Runtime& runtime, const std::string& scratch_directory)
    : runtime_(runtime),
      backups_(std::make_unique<BackupThread>(runtime, absl::StrCat(scratch_directory, "/backup.tmp"))) {}

AdminService::~AdminService() = default;

grpc::ServerUnaryReactor* AdminService::GetVersion(grpc::CallbackServerContext* context, const v1::GetVersionRequest*,
                                                   v1::VersionReply* reply) {
  reply->set_build_id(runtime_.options().build_id);
  reply->set_oldest_protocol_version(kLinkProtocol.oldest);
  reply->set_protocol_version(kLinkProtocol.newest);
  reply->set_term(runtime_.term());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<v1::BackupPiece>* AdminService::Backup(grpc::CallbackServerContext*,
                                                                const v1::BackupRequest*) {
  return backups_->Begin();
}

grpc::ServerUnaryReactor* AdminService::ListQuarantine(grpc::CallbackServerContext* context,
                                                       const v1::ListQuarantineRequest*,
                                                       v1::ListQuarantineReply* reply) {
  for (const runtime::Quarantine::Entry& entry : runtime_.ListQuarantine()) {
    v1::Quarantined* out = reply->add_entities();
    out->set_entity(entry.crash.entity);
    out->set_crashes(entry.crash.count);
    out->set_reason(entry.reason);
    if (entry.crash.count > 0) *out->mutable_last_crash() = ToTimestamp(entry.crash.last_time);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::ReleaseQuarantine(grpc::CallbackServerContext* context,
                                                          const v1::ReleaseQuarantineRequest* request,
                                                          v1::ReleaseQuarantineReply*) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  runtime_.ReleaseQuarantine(request->entity(),
                             [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); });
  return reactor;
}

}  // namespace llmctl::rpc
