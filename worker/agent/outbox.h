// Outbox: messages to the coordinator that are kept until it has stored them.
//
// Each gets the next sequence number. A new session sends again, in order, all
// that is not acknowledged. Not thread-safe.
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
  void Add(v1::WorkerMessage message) {
    message.set_sequence(++last_sequence_);
    messages_.push_back(std::move(message));
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
      messages_.pop_front();
      --sent_;
    }
  }

  // A new session starts: nothing has been sent on it.
  void Rewind() { sent_ = 0; }

  size_t size() const { return messages_.size(); }

 private:
  int64_t last_sequence_ = 0;
  std::deque<v1::WorkerMessage> messages_;
  // How many of `messages_`, from the front, this session has sent.
  size_t sent_ = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_AGENT_OUTBOX_H_
