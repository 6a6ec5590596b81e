// A picture of this process, at the moment when something goes wrong in it.
//
// The shim takes it from outside (worker/contract/picture.h); here is how a trainer asks for it and waits for the
// moment that it takes: when a collective fails because a peer is gone, and when the process itself crashes. Then the
// stack that matters is still there.
#pragma once

#include "absl/time/time.h"

#include "worker/contract/phase_page.h"

namespace llmctl::trainer {

// Asks the parent for a picture; true when it is taken. Async-signal-safe.
bool AskForPicture(const contract::PhasePage& page, absl::Duration patience);

// Signals that end the process with an error (SIGSEGV, SIGABRT, ...) ask for a picture first; the process then ends
// by the signal as it would have. `page` must outlive the process or the next call; null ends it.
void PictureCrashes(const contract::PhasePage* page);

}  // namespace llmctl::trainer
