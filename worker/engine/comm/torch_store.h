// A RendezvousStore in the shape that c10d's process groups take.
//
// c10d knows only exceptions: a failed call throws c10::Error with the status text, which CreateGlooBackend (or
// the CUDA plug-in) turns back into a status.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "worker/engine/comm/rendezvous_store.h"

namespace llmctl::engine::comm {

// `store` must outlive the result and all its clones, and with them every process group made from it.
c10::intrusive_ptr<c10d::Store> MakeTorchStore(RendezvousStore* store, std::chrono::milliseconds timeout);

}  // namespace llmctl::engine::comm
