// StopToken: asks work in progress to end, from another thread: loops look at
// it, waits wake from it, calls are cancelled by it.
//
// Threads: all functions may be called from any thread.
#ifndef LOCKSTEP_CLI_STOP_TOKEN_H_
#define LOCKSTEP_CLI_STOP_TOKEN_H_

#include <grpcpp/client_context.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace lockstep {

class StopToken {
 public:
  void Stop();
  bool stopped() const;
  // Waits `duration`, less if stopped meanwhile; says whether it is stopped.
  bool WaitFor(absl::Duration duration) const;
  // CANCELLED once stopped, else OK.
  absl::Status Check() const;

  // While it lives, `Stop` also cancels the call of `context`, which must
  // outlive it.
  class CallScope {
   public:
    CallScope(StopToken& token, grpc::ClientContext& context);
    ~CallScope();
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    StopToken& token_;
    grpc::ClientContext& context_;
  };

 private:
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_CLI_STOP_TOKEN_H_
