#include "worker/dist/gloo_peer_link.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "worker/dist/slot.h"

namespace lockstep {
namespace {

enum class Direction { kSend, kReceive };

// A message under way, or one that couldn't start.
class Message : public Work {
 public:
  Message(GlooLink& link, std::string what, absl::Duration timeout)
      : link_(link), what_(std::move(what)), timeout_(timeout) {}

  void Start(int peer, uint64_t slot, const Tensor& tensor,
             Direction direction) {
    direction_ = direction;
    status_ = link_.status();
    if (!status_.ok() || tensor.bytes() == 0) return;
    region_ = link_.Register(peer, tensor.raw(), tensor.bytes());
    status_ = direction == Direction::kSend
                  ? region_->Send(slot, 0, tensor.bytes())
                  : region_->Receive(slot, 0, tensor.bytes());
  }

  absl::Status Wait() override {
    if (region_ != nullptr) {
      const absl::Time deadline = absl::Now() + timeout_;
      absl::Status status = direction_ == Direction::kSend
                                ? region_->WaitSends(deadline)
                                : region_->WaitReceives(deadline);
      if (!status.ok()) status = link_.Fail(status);
      status_.Update(status);
      region_.reset();
    }
    if (status_.ok()) return status_;
    return absl::Status(status_.code(),
                        absl::StrCat(what_, ": ", status_.message()));
  }

 private:
  GlooLink& link_;
  const std::string what_;
  const absl::Duration timeout_;
  Direction direction_ = Direction::kSend;
  std::unique_ptr<GlooLink::Region> region_;
  absl::Status status_;
};

class GlooPeerLink : public PeerLink {
 public:
  GlooPeerLink(std::unique_ptr<GlooLink> link, std::string group,
               absl::Duration timeout)
      : link_(std::move(link)), group_(std::move(group)), timeout_(timeout) {}

  std::unique_ptr<Work> Send(int peer, uint64_t tag,
                             const Tensor& tensor) override {
    return Start(Direction::kSend, peer, tag, tensor);
  }
  std::unique_ptr<Work> Receive(int peer, uint64_t tag,
                                const Tensor& tensor) override {
    return Start(Direction::kReceive, peer, tag, tensor);
  }
  void Abort() override {
    link_->Fail(absl::AbortedError("the link was aborted")).IgnoreError();
  }

 private:
  std::unique_ptr<Work> Start(Direction direction, int peer, uint64_t tag,
                              const Tensor& tensor) {
    auto message = std::make_unique<Message>(
        *link_,
        absl::StrCat("rank ", link_->rank(), " of group ", group_, ": ",
                     direction == Direction::kSend ? "send to" : "receive from",
                     " rank ", peer, " of ", tensor.bytes(), " bytes"),
        timeout_);
    // Messages whose sizes differ never meet.
    message->Start(peer,
                   SlotOfValues({tag, static_cast<uint64_t>(tensor.bytes()),
                                 static_cast<uint64_t>(tensor.dtype())}),
                   tensor, direction);
    return message;
  }

  const std::unique_ptr<GlooLink> link_;
  const std::string group_;
  const absl::Duration timeout_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerLink>> MakeGlooPeerLink(
    const GlooLinkOptions& options, absl::Duration timeout) {
  ASSIGN_OR_RETURN(std::unique_ptr<GlooLink> link, GlooLink::Connect(options));
  return std::make_unique<GlooPeerLink>(std::move(link), options.group,
                                        timeout);
}

}  // namespace lockstep
