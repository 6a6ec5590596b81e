// The Admin service: versions, backups, quarantine.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/support/server_callback.h>

#include "coordinator/runtime/runtime.h"
#include "llmctl/v1/admin.grpc.pb.h"

namespace llmctl::rpc {

class AdminService final : public v1::Admin::CallbackService {
 public:
  // `runtime` outlives the server. Backups are made in `scratch_directory` before they are sent.
  AdminService(runtime::Runtime& runtime, const std::string& scratch_directory);
  ~AdminService() override;

  grpc::ServerUnaryReactor* GetVersion(grpc::CallbackServerContext* context, const v1::GetVersionRequest* request,
                                       v1::VersionReply* reply) override;
  grpc::ServerWriteReactor<v1::BackupPiece>* Backup(grpc::CallbackServerContext* context,
                                                    const v1::BackupRequest* request) override;
  grpc::ServerUnaryReactor* ListQuarantine(grpc::CallbackServerContext* context,
                                           const v1::ListQuarantineRequest* request,
                                           v1::ListQuarantineReply* reply) override;
  grpc::ServerUnaryReactor* ReleaseQuarantine(grpc::CallbackServerContext* context,
                                              const v1::ReleaseQuarantineRequest* request,
                                              v1::ReleaseQuarantineReply* reply) override;

 private:
  class BackupThread;

  runtime::Runtime& runtime_;
  const std::unique_ptr<BackupThread> backups_;
};

}  // namespace llmctl::rpc
