#include "worker/dist/shared_memory_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/files/unique_fd.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Turns of looking before a rank sleeps: a few microseconds, as ranks may share
// cores.
constexpr int kLooks = 200;
// Sleeps are as short, so that a dead peer is noticed.
constexpr absl::Duration kSleep = absl::Milliseconds(20);

// What a rank tells the others, on cache lines of its own.
struct alignas(128) RankHeader {
  // Rounds published, modulo 2^32.
  std::atomic<uint32_t> published{0};
  std::atomic<uint32_t> sleepers{0};
  // Of the collective that a round belongs to, by its parity: a rank is at most
  // one round ahead of another.
  std::atomic<uint64_t> signature[2];
  // Not 0 once this rank has failed.
  std::atomic<uint32_t> failed{0};
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

int64_t SegmentBytes(int size) {
  return size * (static_cast<int64_t>(sizeof(RankHeader)) +
                 2 * SharedMemoryChannel::kSlotBytes);
}

void FutexWait(std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec timeout = absl::ToTimespec(kSleep);
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Equal for processes that can see each other's descriptors.
std::string HostToken() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat pids = {};
  if (boot.empty() || stat("/proc/self/ns/pid", &pids) != 0) return "";
  return absl::StrCat(boot, ".", pids.st_ino, ".", getuid());
}

// One rank's introduction: where it is, which process it is, and of rank 0 the
// descriptor of the memory.
struct Introduction {
  std::string host;
  int64_t pid = 0;
  int64_t fd = -1;
};

std::string ToText(const Introduction& introduction) {
  return absl::StrCat(introduction.host, " ", introduction.pid, " ",
                      introduction.fd);
}

absl::StatusOr<Introduction> FromText(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  Introduction introduction;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &introduction.pid) ||
      !absl::SimpleAtoi(parts[2], &introduction.fd)) {
    return absl::InternalError(
        absl::StrCat("\"", text, "\" introduces no rank"));
  }
  introduction.host = parts[0];
  return introduction;
}

// What every rank has set under `what`, in rank order.
absl::StatusOr<std::vector<std::string>> TellAll(
    const SharedMemoryOptions& options, const std::string& what,
    const std::string& value) {
  const std::string prefix =
      absl::StrCat(options.key_prefix, "/memory-", what, "/");
  RETURN_IF_ERROR(
      options.store->Set(absl::StrCat(prefix, options.rank), value));
  std::vector<std::string> keys;
  for (int rank = 0; rank < options.size; ++rank) {
    keys.push_back(absl::StrCat(prefix, rank));
  }
  return options.store->Get(keys, options.connect_timeout);
}

class Mapping {
 public:
  // Null data where it can't be mapped.
  Mapping(int fd, int64_t bytes) : bytes_(bytes) {
    void* const data =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data != MAP_FAILED) data_ = data;
  }
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

class Channel : public SharedMemoryChannel {
 public:
  Channel(const SharedMemoryOptions& options, Mapping mapping,
          std::vector<UniqueFd> processes)
      : options_(options),
        mapping_(std::move(mapping)),
        processes_(std::move(processes)),
        headers_(static_cast<RankHeader*>(mapping_.data())),
        slots_(static_cast<char*>(mapping_.data()) +
               options.size * sizeof(RankHeader)) {}

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  char* slot(int rank) override {
    return slots_ + (2 * rank + static_cast<int64_t>(round_ % 2)) * kSlotBytes;
  }
  void Begin(uint64_t signature) override { signature_ = signature; }
  void Publish() override {
    RankHeader& own = headers_[rank()];
    own.signature[round_ % 2].store(signature_, std::memory_order_relaxed);
    own.published.store(round_ + 1, std::memory_order_seq_cst);
    if (own.sleepers.load(std::memory_order_seq_cst) > 0) {
      FutexWake(own.published);
    }
  }
  absl::Status Await(absl::Time deadline) override {
    for (int step = 1; step < size(); ++step) {
      RETURN_IF_ERROR(AwaitRank((rank() + step) % size(), deadline));
    }
    return absl::OkStatus();
  }
  void Next() override { ++round_; }
  void Fail(const absl::Status& status) override {
    {
      absl::MutexLock lock(&mutex_);
      failure_.Update(status);
    }
    headers_[rank()].failed.store(1, std::memory_order_seq_cst);
    for (int rank = 0; rank < size(); ++rank) {
      FutexWake(headers_[rank].published);
    }
  }

 private:
  bool Published(const RankHeader& header) const {
    // Counts wrap around: what was published is this round or the next.
    return static_cast<int32_t>(
               header.published.load(std::memory_order_acquire) -
               (round_ + 1)) >= 0;
  }
  absl::Status AwaitRank(int peer, absl::Time deadline);
  // Whether waiting on has a point.
  absl::Status Check(int peer, absl::Time deadline);

  const SharedMemoryOptions options_;
  const Mapping mapping_;
  // Of the ranks' processes; pidfds.
  const std::vector<UniqueFd> processes_;
  RankHeader* const headers_;
  char* const slots_;
  uint32_t round_ = 0;
  uint64_t signature_ = 0;

  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Channel::AwaitRank(int peer, absl::Time deadline) {
  RankHeader& header = headers_[peer];
  for (int look = 0; look < kLooks; ++look) {
    if (Published(header)) break;
    __builtin_ia32_pause();
  }
  while (!Published(header)) {
    RETURN_IF_ERROR(Check(peer, deadline));
    header.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = header.published.load(std::memory_order_seq_cst);
    if (!Published(header)) FutexWait(header.published, seen);
    header.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
  if (header.signature[round_ % 2].load(std::memory_order_relaxed) !=
      signature_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", peer, " is at another collective than rank ", rank()));
  }
  return absl::OkStatus();
}

absl::Status Channel::Check(int peer, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(failure_);
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (headers_[rank].failed.load(std::memory_order_relaxed) != 0) {
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, " is gone: it has failed"));
    }
  }
  pollfd process = {processes_[peer].get(), POLLIN, 0};
  if (poll(&process, 1, 0) > 0 && !Published(headers_[peer])) {
    return absl::UnavailableError(
        absl::StrCat("rank ", peer, " is gone: its process has ended"));
  }
  if (absl::Now() > deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat("rank ", peer, " did not answer in time"));
  }
  return absl::OkStatus();
}

// This rank's view of the memory, and of the others' processes; null where
// something is out of reach.
absl::StatusOr<std::unique_ptr<SharedMemoryChannel>> Map(
    const SharedMemoryOptions& options, int own_fd,
    const std::vector<Introduction>& ranks) {
  UniqueFd fd(own_fd >= 0 ? fcntl(own_fd, F_DUPFD_CLOEXEC, 0)
                          : open(absl::StrCat("/proc/", ranks[0].pid, "/fd/",
                                              ranks[0].fd)
                                     .c_str(),
                                 O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return nullptr;
  Mapping mapping(fd.get(), SegmentBytes(options.size));
  if (mapping.data() == nullptr) return nullptr;
  std::vector<UniqueFd> processes;
  for (const Introduction& rank : ranks) {
    processes.emplace_back(
        static_cast<int>(syscall(SYS_pidfd_open, rank.pid, 0)));
    if (processes.back().get() < 0) return nullptr;
  }
  return std::make_unique<Channel>(options, std::move(mapping),
                                   std::move(processes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryChannel>>
SharedMemoryChannel::Connect(const SharedMemoryOptions& options) {
  Introduction own = {HostToken(), getpid(), -1};
  UniqueFd memory;
  if (options.rank == 0) {
    memory = UniqueFd(memfd_create("lockstep-group", MFD_CLOEXEC));
    if (memory.get() >= 0 &&
        ftruncate(memory.get(), SegmentBytes(options.size)) == 0) {
      own.fd = memory.get();
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                   TellAll(options, "rank", ToText(own)));
  std::vector<Introduction> ranks;
  bool reachable = !own.host.empty();
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(ranks.emplace_back(), FromText(text));
    reachable = reachable && ranks.back().host == own.host;
  }
  reachable = reachable && ranks[0].fd >= 0;
  std::unique_ptr<SharedMemoryChannel> channel;
  if (reachable) {
    ASSIGN_OR_RETURN(channel, Map(options, memory.get(), ranks));
  }
  // All use it, or none does; and rank 0's descriptor stays until all have it.
  ASSIGN_OR_RETURN(
      const std::vector<std::string> mapped,
      TellAll(options, "mapped", channel == nullptr ? "no" : "yes"));
  for (const std::string& answer : mapped) {
    if (answer != "yes") return nullptr;
  }
  return channel;
}

}  // namespace lockstep
