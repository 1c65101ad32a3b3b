// Outbox: messages to the coordinator that are kept until it has stored them.
//
// Each gets the next sequence number. A new session sends again, in order, all
// that is not acknowledged. While the coordinator stays away they may grow to a
// number of bytes; then the oldest step reports go, which are many and matter
// least. All else is kept. Not thread-safe.
#ifndef LOCKSTEP_WORKER_AGENT_OUTBOX_H_
#define LOCKSTEP_WORKER_AGENT_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "lockstep/v1/worker_service.pb.h"

namespace lockstep {

class Outbox {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;

  explicit Outbox(size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  void Add(v1::WorkerMessage message) {
    message.set_sequence(++last_sequence_);
    bytes_ += message.ByteSizeLong();
    messages_.push_back(std::move(message));
    if (bytes_ > most_bytes_) DropOldSteps();
  }

  // The first message that this session has not sent yet, marked as sent; null
  // when there is none. Good until the next call.
  const v1::WorkerMessage* NextUnsent() {
    if (!has_unsent()) return nullptr;
    return &messages_[sent_++];
  }
  bool has_unsent() const { return sent_ < messages_.size(); }

  // All messages up to `sequence` are stored. What was never sent stays.
  void Acknowledge(int64_t sequence) {
    while (sent_ > 0 && messages_.front().sequence() <= sequence) {
      bytes_ -= messages_.front().ByteSizeLong();
      messages_.pop_front();
      --sent_;
    }
  }

  // A new session starts: nothing has been sent on it.
  void Rewind() { sent_ = 0; }

  size_t size() const { return messages_.size(); }
  // Step reports dropped since the last call.
  int64_t TakeDropped() { return std::exchange(dropped_, 0); }

 private:
  // More than need be, so that it isn't done for each further message.
  void DropOldSteps() {
    const size_t wanted = most_bytes_ - most_bytes_ / 8;
    std::deque<v1::WorkerMessage> kept;
    size_t kept_sent = 0;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (bytes_ > wanted && messages_[i].rank_report().has_step()) {
        bytes_ -= messages_[i].ByteSizeLong();
        ++dropped_;
        continue;
      }
      if (i < sent_) ++kept_sent;
      kept.push_back(std::move(messages_[i]));
    }
    messages_ = std::move(kept);
    sent_ = kept_sent;
  }

  const size_t most_bytes_;
  size_t bytes_ = 0;
  int64_t dropped_ = 0;
  int64_t last_sequence_ = 0;
  std::deque<v1::WorkerMessage> messages_;
  // How many of `messages_`, from the front, this session has sent.
  size_t sent_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_OUTBOX_H_
