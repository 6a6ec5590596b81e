#include "coordinator/runtime/host_links.h"

#include <utility>

namespace llmctl::runtime {

void HostLinks::Add(int64_t link, std::shared_ptr<HostLink> connection) {
  MutexLock lock(mutex_);
  links_[link] = std::move(connection);
}

void HostLinks::Remove(int64_t link) {
  MutexLock lock(mutex_);
  Take(link);
}

std::shared_ptr<HostLink> HostLinks::Take(int64_t link) {
  auto it = links_.find(link);
  if (it == links_.end()) return nullptr;
  std::shared_ptr<HostLink> connection = std::move(it->second);
  links_.erase(it);
  return connection;
}

void HostLinks::Admit(const NodeId& node, int64_t link) {
  std::shared_ptr<HostLink> admitted, replaced;
  {
    MutexLock lock(mutex_);
    auto [of_node, first] = admitted_.try_emplace(node, link);
    if (!first && of_node->second != link) {
      replaced = Take(of_node->second);
      of_node->second = link;
    }
    if (auto it = links_.find(link); it != links_.end()) admitted = it->second;
  }
  if (replaced) replaced->Close("a newer connection of this host took the place of this one");
  if (admitted) admitted->Welcome();
}

void HostLinks::Refuse(int64_t link, const std::string& reason) {
  std::shared_ptr<HostLink> refused;
  {
    MutexLock lock(mutex_);
    refused = Take(link);
  }
  if (refused) refused->Refuse(reason);
}

void HostLinks::Close(const NodeId& node, const std::string& reason) {
  std::shared_ptr<HostLink> closed;
  {
    MutexLock lock(mutex_);
    auto it = admitted_.find(node);
    if (it != admitted_.end()) closed = Take(it->second);
  }
  if (closed) closed->Close(reason);
}

void HostLinks::CloseAll(const std::string& reason) {
  std::map<int64_t, std::shared_ptr<HostLink>> all;
  {
    MutexLock lock(mutex_);
    all.swap(links_);
  }
  for (auto& [link, connection] : all) connection->Close(reason);
}

bool HostLinks::Has(int64_t link) const {
  MutexLock lock(mutex_);
  return links_.contains(link);
}

std::shared_ptr<HostLink> HostLinks::Find(const NodeId& node) const {
  MutexLock lock(mutex_);
  auto of_node = admitted_.find(node);
  if (of_node == admitted_.end()) return nullptr;
  auto it = links_.find(of_node->second);
  return it == links_.end() ? nullptr : it->second;
}

}  // namespace llmctl::runtime
