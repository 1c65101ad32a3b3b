#include "coordinator/launch/rendezvous_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kMostKeyBytes = 1024;
constexpr size_t kMostValueBytes = 1 << 20;
constexpr size_t kMostKeys = 100'000;
// How often a waiting Get asks whether its caller is still there.
constexpr absl::Duration kAskInterval = absl::Milliseconds(200);

// Takes as long whatever the guess has right.
bool IsSameSecret(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

std::string GangText(const v1::GangId& gang) {
  return absl::StrCat("job ", gang.job(), " generation ", gang.generation());
}

absl::Status Ended(const v1::GangId& gang) {
  return absl::AbortedError(
      absl::StrCat(GangText(gang), ": its rendezvous has ended"));
}

}  // namespace

RendezvousStore::RendezvousStore(JobStore& store, Clock& clock)
    : store_(store), clock_(clock) {}

RendezvousStore::~RendezvousStore() { Stop(); }

void RendezvousStore::Open(const v1::GangId& gang, const std::string& secret) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Meeting>& meeting = meetings_[gang.job()];
  if (meeting != nullptr) meeting->ended = true;
  meeting = std::make_shared<Meeting>();
  meeting->generation = gang.generation();
  meeting->secret = secret;
}

void RendezvousStore::Restore(const RendezvousRecord& record) {
  absl::MutexLock lock(&mutex_);
  const auto found = meetings_.find(record.job);
  if (found == meetings_.end() ||
      found->second->generation != record.generation) {
    return;
  }
  found->second->values[record.key] = record.value;
}

void RendezvousStore::Close(const v1::GangId& gang) {
  absl::MutexLock lock(&mutex_);
  const auto found = meetings_.find(gang.job());
  if (found == meetings_.end() ||
      found->second->generation != gang.generation()) {
    return;
  }
  found->second->ended = true;
  meetings_.erase(found);
}

void RendezvousStore::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

int64_t RendezvousStore::key_count() const {
  int64_t count = 0;
  absl::MutexLock lock(&mutex_);
  for (const auto& [job, meeting] : meetings_) {
    count += static_cast<int64_t>(meeting->values.size());
  }
  return count;
}

absl::StatusOr<std::shared_ptr<RendezvousStore::Meeting>> RendezvousStore::Find(
    const v1::GangId& gang, const std::string& secret) {
  const auto found = meetings_.find(gang.job());
  if (found == meetings_.end()) return Ended(gang);
  if (found->second->generation != gang.generation()) {
    return absl::AbortedError(absl::StrCat(GangText(gang),
                                           " is stale, the newest is ",
                                           found->second->generation));
  }
  if (!IsSameSecret(found->second->secret, secret)) {
    return absl::PermissionDeniedError(
        absl::StrCat(GangText(gang), ": wrong rendezvous secret"));
  }
  return found->second;
}

absl::Status RendezvousStore::Set(const v1::GangId& gang,
                                  const std::string& secret,
                                  const std::string& key,
                                  const std::string& value) {
  if (key.empty() || key.size() > kMostKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(GangText(gang), ": a rendezvous key has ", key.size(),
                     " bytes, want 1 to ", kMostKeyBytes));
  }
  if (value.size() > kMostValueBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        GangText(gang), ": the value of ", absl::CHexEscape(key), " has ",
        value.size(), " bytes, want at most ", kMostValueBytes));
  }
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::shared_ptr<Meeting> meeting, Find(gang, secret));
  if (meeting->values.size() >= kMostKeys) {
    return absl::ResourceExhaustedError(absl::StrCat(
        GangText(gang), ": has ", kMostKeys, " rendezvous keys already"));
  }
  const auto [place, is_new] = meeting->values.emplace(key, value);
  if (!is_new && place->second != value) {
    return absl::AlreadyExistsError(
        absl::StrCat(GangText(gang), ": rendezvous key ", absl::CHexEscape(key),
                     " has another value"));
  }
  if (is_new) {
    StoreChange change;
    change.rendezvous.push_back({gang.job(), gang.generation(), key, value});
    store_.Enqueue(std::move(change));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RendezvousStore::Get(
    const v1::GangId& gang, const std::string& secret,
    const std::vector<std::string>& keys, absl::Duration timeout,
    const std::function<bool()>& cancelled) {
  const absl::Duration deadline = clock_.Uptime() + timeout;
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::shared_ptr<Meeting> meeting, Find(gang, secret));
  const auto is_missing = [&](const std::string& key) {
    return meeting->values.count(key) == 0;
  };
  const auto settled = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stopped_ || meeting->ended ||
           std::none_of(keys.begin(), keys.end(), is_missing);
  };
  for (;;) {
    const absl::Duration left = deadline - clock_.Uptime();
    const bool done = clock_.WaitFor(mutex_, absl::Condition(&settled),
                                     std::min(left, kAskInterval));
    if (stopped_) {
      return absl::UnavailableError("the coordinator stops");
    }
    if (meeting->ended) return Ended(gang);
    if (done) break;
    if (cancelled()) {
      return absl::CancelledError(
          absl::StrCat(GangText(gang), ": the caller is gone"));
    }
    if (clock_.Uptime() >= deadline) {
      const auto first = std::find_if(keys.begin(), keys.end(), is_missing);
      const auto others = std::count_if(first + 1, keys.end(), is_missing);
      return absl::DeadlineExceededError(absl::StrCat(
          GangText(gang), ": rendezvous key ", absl::CHexEscape(*first),
          " is missing after ", absl::FormatDuration(timeout), ", and ", others,
          " other", others == 1 ? "" : "s", " of ", keys.size()));
    }
  }
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(meeting->values.at(key));
  return values;
}

}  // namespace lockstep
