#include "worker/dist/gloo_link.h"

#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

// Slots of the link's own: the collectives' ones have the upper bit clear.
constexpr uint64_t kSentinelSlot = ~uint64_t{0};
constexpr uint64_t kAssembleSlot = kSentinelSlot - 1;
// The sentinel's wait is ended by its link, not by time.
constexpr milliseconds kForever = std::chrono::hours(24 * 365);
// Gloo waits five times a pair's timeout for its connection.
constexpr int kConnectTimeoutFactor = 5;
// What Gloo tells all other operations when one ran into its timeout.
constexpr absl::string_view kTimeoutElsewhere =
    "Application timeout caused pair closure";
// How often the watcher looks for further peers that go, after the first.
constexpr absl::Duration kLookInterval = absl::Milliseconds(20);

milliseconds Remaining(absl::Time deadline) {
  const int64_t left =
      absl::ToInt64Milliseconds(deadline - absl::Now() + absl::Milliseconds(1));
  return std::clamp(milliseconds(left), milliseconds(0), kForever);
}

// What each rank puts into the store: the group's size and, for every other
// rank in order, the address of the socket that waits for it.
std::string EncodeAddresses(int size,
                            const std::vector<std::vector<char>>& addresses) {
  std::string text = absl::StrCat(size, "\n");
  for (const std::vector<char>& address : addresses) {
    text.append(address.data(), address.size());
  }
  return text;
}

// The address in rank `owner`'s value that waits for `rank`.
absl::StatusOr<std::vector<char>> DecodeAddress(const std::string& text,
                                                int size, int owner, int rank) {
  const std::string header = absl::StrCat(size, "\n");
  if (text.compare(0, header.size(), header) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", owner, " has a group of ",
                     text.substr(0, text.find('\n')), " ranks, want ", size));
  }
  const size_t others = size - 1;
  const size_t bytes = (text.size() - header.size()) / others;
  if (bytes == 0 || header.size() + bytes * others != text.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", owner, "'s addresses have ", text.size(), " bytes"));
  }
  const size_t index = rank > owner ? rank - 1 : rank;
  const char* begin = text.data() + header.size() + index * bytes;
  return std::vector<char>(begin, begin + bytes);
}

class GlooLinkImpl : public GlooLink {
 public:
  GlooLinkImpl(const GlooLinkOptions& options,
               std::shared_ptr<gloo::transport::Context> context)
      : rank_(options.rank),
        size_(options.size),
        context_(std::move(context)),
        alarm_(context_->createUnboundBuffer(&sentinel_byte_, 1)),
        gone_(options.size) {}

  // Connections go with context_, softly: what was sent still arrives. (A close
  // by Fail resets them.)
  ~GlooLinkImpl() override {
    SetFailed(absl::CancelledError("the link has ended")).IgnoreError();
    if (watcher_.joinable()) watcher_.join();
  }

  absl::Status Meet(const GlooLinkOptions& options);
  // Notices, from now on, peers that go.
  absl::Status Watch();
  // Waits until every rank has come as far: none leaves before.
  absl::Status Assemble(absl::Time deadline);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Region> Register(int peer, void* data,
                                   int64_t bytes) override;
  absl::Status Fail(absl::Status status) override;
  absl::Status status() const override {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  class RegionImpl;

  // Wakes whoever waits; returns the first failure.
  absl::Status SetFailed(absl::Status status);
  void WatchPeers();
  void LookForGonePeers();
  // Whether the link fails within `time`; waits for it.
  bool FailsWithin(absl::Duration time);
  void MarkGone(int peer, const std::string& cause);
  // Status of a wait for `peer` that Gloo ended with `cause`.
  absl::Status FailWait(int peer, absl::Time deadline,
                        const std::string& cause);

  // Constant after construction.
  const int rank_;
  const int size_;
  const std::shared_ptr<gloo::transport::Context> context_;
  // One receive per peer that is never matched: Gloo tells it when the
  // connection breaks. (It doesn't tell a message that is half sent or half
  // received, which would wait for its deadline.) The alarm has a receive from
  // every peer; it is told after that peer's own and wakes the watcher.
  char sentinel_byte_ = 0;
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sentinels_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> alarm_;
  std::thread watcher_;
  std::once_flag closed_;

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::set<RegionImpl*> regions_ ABSL_GUARDED_BY(mutex_);
  // Why each peer is gone; empty while it is there.
  std::vector<std::string> gone_ ABSL_GUARDED_BY(mutex_);
};

class GlooLinkImpl::RegionImpl : public GlooLink::Region {
 public:
  RegionImpl(GlooLinkImpl& link, int peer, void* data, int64_t bytes)
      : link_(link),
        peer_(peer),
        buffer_(link.context_->createUnboundBuffer(data, bytes)) {
    absl::MutexLock lock(&link_.mutex_);
    link_.regions_.insert(this);
    // Whoever waits finds out at once.
    if (!link_.status_.ok() || !link_.gone_[peer].empty()) Wake();
  }
  ~RegionImpl() override {
    absl::MutexLock lock(&link_.mutex_);
    link_.regions_.erase(this);
  }

  absl::Status Send(uint64_t slot, int64_t offset, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    try {
      buffer_->send(peer_, slot, offset, bytes);
    } catch (const std::exception& error) {
      return link_.FailWait(peer_, absl::InfiniteFuture(), GlooCause(error));
    }
    ++sends_;
    return absl::OkStatus();
  }

  absl::Status Receive(uint64_t slot, int64_t offset, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    try {
      buffer_->recv(peer_, slot, offset, bytes);
    } catch (const std::exception& error) {
      return link_.FailWait(peer_, absl::InfiniteFuture(), GlooCause(error));
    }
    ++receives_;
    return absl::OkStatus();
  }

  absl::Status WaitReceive(absl::Time deadline) override {
    CHECK(receives_ > 0) << "no receive was posted";
    RETURN_IF_ERROR(Wait(deadline, [this](milliseconds timeout) {
      return buffer_->waitRecv(nullptr, timeout);
    }));
    --receives_;
    return absl::OkStatus();
  }

  absl::Status WaitReceives(absl::Time deadline) override {
    while (receives_ > 0) RETURN_IF_ERROR(WaitReceive(deadline));
    return absl::OkStatus();
  }

  absl::Status WaitSends(absl::Time deadline) override {
    for (; sends_ > 0; --sends_) {
      RETURN_IF_ERROR(Wait(deadline, [this](milliseconds timeout) {
        return buffer_->waitSend(nullptr, timeout);
      }));
    }
    return absl::OkStatus();
  }

  int peer() const { return peer_; }
  // Ends the wait under way, or the next one.
  void Wake() {
    buffer_->abortWaitRecv();
    buffer_->abortWaitSend();
  }

 private:
  template <typename Waiter>
  absl::Status Wait(absl::Time deadline, const Waiter& waiter) {
    try {
      if (waiter(Remaining(deadline))) return absl::OkStatus();
      // Woken. If only the peer has gone, what it sent before counts.
      RETURN_IF_ERROR(link_.status());
      if (waiter(milliseconds(0))) return absl::OkStatus();
      return link_.FailWait(peer_, absl::InfiniteFuture(), "woken twice");
    } catch (const std::exception& error) {
      return link_.FailWait(peer_, deadline, GlooCause(error));
    }
  }

  GlooLinkImpl& link_;
  const int peer_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int64_t sends_ = 0;
  int64_t receives_ = 0;
};

std::unique_ptr<GlooLink::Region> GlooLinkImpl::Register(int peer, void* data,
                                                         int64_t bytes) {
  return std::make_unique<RegionImpl>(*this, peer, data, bytes);
}

absl::Status GlooLinkImpl::FailWait(int peer, absl::Time deadline,
                                    const std::string& cause) {
  std::string gone;
  {
    absl::MutexLock lock(&mutex_);
    gone = gone_[peer];
  }
  if (gone.empty() && absl::Now() >= deadline) {
    return Fail(absl::DeadlineExceededError(
        absl::StrCat("rank ", peer, " did not answer in time")));
  }
  return Fail(absl::UnavailableError(absl::StrCat(
      "rank ", peer, " is gone (", gone.empty() ? cause : gone, ")")));
}

absl::Status GlooLinkImpl::SetFailed(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (status_.ok()) status_ = std::move(status);
  for (RegionImpl* region : regions_) region->Wake();
  alarm_->abortWaitRecv();
  return status_;
}

absl::Status GlooLinkImpl::Fail(absl::Status status) {
  const absl::Status first = SetFailed(std::move(status));
  // Whoever comes second waits here until the first has closed them all.
  std::call_once(closed_, [this] {
    for (int peer = 0; peer < size_; ++peer) {
      if (auto& pair = context_->getPair(peer); pair != nullptr) {
        try {
          pair->close();
        } catch (const std::exception& error) {
          LOG(WARNING) << "closing the connection to rank " << peer << ": "
                       << GlooCause(error);
        }
      }
    }
  });
  return first;
}

void GlooLinkImpl::MarkGone(int peer, const std::string& cause) {
  absl::MutexLock lock(&mutex_);
  if (!gone_[peer].empty()) return;
  gone_[peer] = cause;
  for (RegionImpl* region : regions_) {
    if (region->peer() == peer) region->Wake();
  }
}

absl::Status GlooLinkImpl::Watch() {
  sentinels_.resize(size_);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    try {
      sentinels_[peer] = context_->createUnboundBuffer(&sentinel_byte_, 1);
      sentinels_[peer]->recv(peer, kSentinelSlot, 0, 1);
      alarm_->recv(peer, kSentinelSlot, 0, 1);
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat(
          "rank ", peer, " left while connecting (", GlooCause(error), ")"));
    }
  }
  watcher_ = std::thread([this] { WatchPeers(); });
  return absl::OkStatus();
}

void GlooLinkImpl::LookForGonePeers() {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    try {
      // Throws the connection's error; without one, returns at once.
      sentinels_[peer]->abortWaitRecv();
      sentinels_[peer]->waitRecv(nullptr, milliseconds(0));
    } catch (const std::exception& error) {
      const std::string cause = GlooCause(error);
      // Ours, not the peer's: the wait that ran out fails the link.
      if (cause != kTimeoutElsewhere) MarkGone(peer, cause);
    }
  }
}

void GlooLinkImpl::WatchPeers() {
  try {
    alarm_->waitRecv(nullptr, kForever);
  } catch (const std::exception&) {
    // A connection broke: the look below says which.
  }
  // Gloo keeps a buffer's first error, so the alarm goes off once. Arming
  // another would send messages to peers that may be about to leave.
  do {
    LookForGonePeers();
  } while (!FailsWithin(kLookInterval));
}

bool GlooLinkImpl::FailsWithin(absl::Duration time) {
  const auto failed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !status_.ok();
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&failed), time);
}

absl::Status GlooLinkImpl::Assemble(absl::Time deadline) {
  char token = 0;
  std::vector<char> tokens(size_);
  std::vector<std::unique_ptr<Region>> regions;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    regions.push_back(Register(peer, &tokens[peer], 1));
    RETURN_IF_ERROR(regions.back()->Receive(kAssembleSlot, 0, 1));
    regions.push_back(Register(peer, &token, 1));
    RETURN_IF_ERROR(regions.back()->Send(kAssembleSlot, 0, 1));
  }
  for (const std::unique_ptr<Region>& region : regions) {
    RETURN_IF_ERROR(region->WaitReceives(deadline));
    RETURN_IF_ERROR(region->WaitSends(deadline));
  }
  return absl::OkStatus();
}

absl::Status GlooLinkImpl::Meet(const GlooLinkOptions& options) {
  const absl::Time deadline = absl::Now() + options.connect_timeout;
  std::vector<std::vector<char>> addresses;
  std::vector<std::string> keys;
  std::vector<int> peers;
  try {
    context_->setTimeout(
        std::max(milliseconds(1), Remaining(deadline) / kConnectTimeoutFactor));
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      addresses.push_back(context_->createPair(peer)->address().bytes());
      keys.push_back(absl::StrCat(options.key_prefix, "/", peer));
      peers.push_back(peer);
    }
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("can't listen for other ranks: ", GlooCause(error)));
  }
  RETURN_IF_ERROR(
      options.store->Set(absl::StrCat(options.key_prefix, "/", rank_),
                         EncodeAddresses(size_, addresses)));
  absl::StatusOr<std::vector<std::string>> values =
      options.store->Get(keys, options.connect_timeout);
  if (absl::IsDeadlineExceeded(values.status())) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (options.store->Get({keys[i]}, absl::ZeroDuration()).ok()) continue;
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", peers[i], " did not join within ",
                       absl::FormatDuration(options.connect_timeout)));
    }
  }
  RETURN_IF_ERROR(values.status());
  if (values->size() != keys.size()) {
    return absl::InternalError(absl::StrCat("the store gave ", values->size(),
                                            " values, want ", keys.size()));
  }
  // All ranks connect in ascending order of their peers, and the connecting
  // side doesn't need the other to be there: no circle of waiting ranks.
  for (size_t i = 0; i < peers.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<char> address,
                     DecodeAddress((*values)[i], size_, peers[i], rank_));
    try {
      context_->getPair(peers[i])->connect(address);
    } catch (const std::exception& error) {
      const std::string message = absl::StrCat(
          "can't connect to rank ", peers[i], " (", GlooCause(error), ")");
      return absl::Now() >= deadline ? absl::DeadlineExceededError(message)
                                     : absl::UnavailableError(message);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GlooLink>> GlooLink::Connect(
    const GlooLinkOptions& options) {
  auto link = std::make_unique<GlooLinkImpl>(
      options, options.device->CreateContext(options.rank, options.size));
  absl::Status status = link->Meet(options);
  if (status.ok()) status = link->Watch();
  if (status.ok()) {
    status = link->Assemble(absl::Now() + options.connect_timeout);
  }
  if (!status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat("rank ", options.rank, " of group ", options.group, " (",
                     options.size, " ranks): ", status.message()));
  }
  return link;
}

}  // namespace lockstep
