#include "cli/stop_token.h"

namespace lockstep {

void StopToken::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  // TryCancel only posts to the call; it doesn't wait for it.
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

bool StopToken::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

bool StopToken::WaitFor(absl::Duration duration) const {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopped_), duration);
  return stopped_;
}

absl::Status StopToken::Check() const {
  return stopped() ? absl::CancelledError("interrupted") : absl::OkStatus();
}

StopToken::CallScope::CallScope(StopToken& token, grpc::ClientContext& context)
    : token_(token), context_(context) {
  absl::MutexLock lock(&token_.mutex_);
  token_.calls_.insert(&context_);
  if (token_.stopped_) context_.TryCancel();
}

StopToken::CallScope::~CallScope() {
  absl::MutexLock lock(&token_.mutex_);
  token_.calls_.erase(&context_);
}

}  // namespace lockstep
