#include "coordinator/membership/worker_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/status_macros.h"
#include "common/timestamp.h"

namespace lockstep {
namespace {

constexpr size_t kMostNameBytes = 253;  // a host name
constexpr int kMostDevices = 1024;
// Lost workers are listed for that long.
constexpr absl::Duration kForgetAfter = absl::Hours(1);

absl::Status CheckHello(const v1::WorkerHello& hello) {
  if (hello.name().empty() || hello.name().size() > kMostNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the worker's name has ", hello.name().size(),
                     " bytes, want 1 to ", kMostNameBytes));
  }
  if (hello.incarnation().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", hello.name(), " names no incarnation"));
  }
  if (hello.devices_size() > kMostDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", hello.name(), " has ", hello.devices_size(),
                     " devices, want at most ", kMostDevices));
  }
  for (int i = 0; i < hello.devices_size(); ++i) {
    for (int j = 0; j < i; ++j) {
      if (hello.devices(i).id() != hello.devices(j).id()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("worker ", hello.name(), " has device ",
                       hello.devices(i).id(), " twice"));
    }
  }
  return absl::OkStatus();
}

// Workers that are reached at one address are on one host.
std::string HostOf(const v1::WorkerHello& hello) {
  const auto address = ParseAddress(hello.address());
  if (address.ok() && !address->host.empty()) return address->host;
  return hello.address().empty() ? hello.name() : hello.address();
}

bool SameGang(const v1::GangId& a, const v1::GangId& b) {
  return a.job() == b.job() && a.generation() == b.generation();
}

}  // namespace

WorkerRegistry::WorkerRegistry(Clock& clock, Options options)
    : clock_(clock), options_(options) {}

absl::StatusOr<WorkerRegistry::Admitted> WorkerRegistry::Admit(
    const v1::WorkerHello& hello,
    std::shared_ptr<WorkerConnection> connection) {
  RETURN_IF_ERROR(CheckHello(hello));
  Admitted admitted;
  absl::MutexLock lock(&mutex_);
  Worker& worker = workers_[hello.name()];
  const bool known = !worker.hello.incarnation().empty();
  const bool same = worker.hello.incarnation() == hello.incarnation();
  if (known && !same && worker.connection != nullptr && !worker.lost) {
    return absl::AlreadyExistsError(
        absl::StrCat("worker ", hello.name(), " is connected already, from ",
                     worker.hello.address(), "; give this one another name"));
  }
  if (known && !same) {
    if (!worker.lost) {
      admitted.replaced = WorkerLife{hello.name(), worker.hello.incarnation()};
    }
    worker.holders.clear();
    worker.last_sequence = 0;
  }
  // One that was given up comes back as if new: its ranks are stale.
  admitted.old_connection = std::move(worker.connection);
  worker.hello = hello;
  worker.connection = std::move(connection);
  worker.lost = false;
  worker.lease_end = clock_.Uptime() + options_.lease;
  worker.last_heard = clock_.Now();
  return admitted;
}

void WorkerRegistry::Expect(const WorkerLife& life, absl::Duration within) {
  absl::MutexLock lock(&mutex_);
  Worker& worker = workers_[life.name];
  worker.hello.set_name(life.name);
  worker.hello.set_incarnation(life.incarnation);
  worker.lease_end = clock_.Uptime() + within;
  worker.disconnected_at = clock_.Uptime();
}

bool WorkerRegistry::Heard(const std::string& name,
                           const WorkerConnection* connection) {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end() || found->second.connection.get() != connection) {
    return false;
  }
  found->second.lease_end = clock_.Uptime() + options_.lease;
  found->second.last_heard = clock_.Now();
  return true;
}

bool WorkerRegistry::IsNew(const std::string& name, int64_t sequence) {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end()) return false;
  if (sequence <= found->second.last_sequence) return false;
  found->second.last_sequence = sequence;
  return true;
}

bool WorkerRegistry::Disconnect(const std::string& name,
                                const WorkerConnection* connection) {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end() || found->second.connection.get() != connection) {
    return false;
  }
  found->second.connection = nullptr;
  found->second.disconnected_at = clock_.Uptime();
  return true;
}

std::vector<WorkerLife> WorkerRegistry::Expire() {
  std::vector<WorkerLife> expired;
  std::vector<std::shared_ptr<WorkerConnection>> closed;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.Uptime();
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      Worker& entry = worker->second;
      if (!entry.lost && entry.lease_end <= now) {
        entry.lost = true;
        entry.holders.clear();
        if (entry.connection != nullptr) {
          closed.push_back(std::move(entry.connection));
          entry.connection = nullptr;
          entry.disconnected_at = now;
        }
        expired.push_back({worker->first, entry.hello.incarnation()});
      }
      const bool old = entry.lost && entry.lease_end + kForgetAfter <= now;
      worker = old ? workers_.erase(worker) : std::next(worker);
    }
  }
  for (const auto& connection : closed) {
    connection->Close(absl::UnavailableError(absl::StrCat(
        "no heartbeat within ", absl::FormatDuration(options_.lease))));
  }
  return expired;
}

void WorkerRegistry::Extend(absl::Duration by) {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, worker] : workers_) {
    if (worker.lost) continue;
    worker.lease_end += by;
    worker.disconnected_at += by;
  }
}

const WorkerRegistry::Worker* WorkerRegistry::FindLife(
    const WorkerLife& life) const {
  const auto found = workers_.find(life.name);
  if (found == workers_.end() || found->second.lost ||
      found->second.hello.incarnation() != life.incarnation) {
    return nullptr;
  }
  return &found->second;
}

std::shared_ptr<WorkerConnection> WorkerRegistry::ConnectionOf(
    const WorkerLife& life) const {
  absl::MutexLock lock(&mutex_);
  const Worker* worker = FindLife(life);
  return worker == nullptr ? nullptr : worker->connection;
}

bool WorkerRegistry::Send(const WorkerLife& life,
                          const v1::CoordinatorMessage& message) {
  const auto connection = ConnectionOf(life);
  if (connection == nullptr) return false;
  connection->Send(message);
  return true;
}

std::optional<absl::Duration> WorkerRegistry::DisconnectedFor(
    const WorkerLife& life) const {
  absl::MutexLock lock(&mutex_);
  const Worker* worker = FindLife(life);
  if (worker == nullptr) return absl::InfiniteDuration();
  if (worker->connection != nullptr) return std::nullopt;
  return clock_.Uptime() - worker->disconnected_at;
}

void WorkerRegistry::Hold(const WorkerLife& life, const std::string& device,
                          const v1::GangId& gang, int64_t rank) {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(life.name);
  if (found == workers_.end() ||
      found->second.hello.incarnation() != life.incarnation) {
    return;
  }
  found->second.holders[device] = {gang, rank};
}

void WorkerRegistry::Release(const v1::GangId& gang, int64_t rank) {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, worker] : workers_) {
    std::erase_if(worker.holders, [&](const auto& holder) {
      return holder.second.rank == rank && SameGang(holder.second.gang, gang);
    });
  }
}

void WorkerRegistry::ReleaseGang(const v1::GangId& gang) {
  absl::MutexLock lock(&mutex_);
  for (auto& [name, worker] : workers_) {
    std::erase_if(worker.holders, [&](const auto& holder) {
      return SameGang(holder.second.gang, gang);
    });
  }
}

std::vector<v1::GangId> WorkerRegistry::HoldersOn(
    const WorkerLife& life) const {
  std::vector<v1::GangId> gangs;
  absl::MutexLock lock(&mutex_);
  const Worker* worker = FindLife(life);
  if (worker == nullptr) return gangs;
  for (const auto& [device, holder] : worker->holders) {
    const v1::GangId& held = holder.gang;
    const bool listed = std::any_of(
        gangs.begin(), gangs.end(),
        [&held](const v1::GangId& gang) { return SameGang(gang, held); });
    if (!listed) gangs.push_back(held);
  }
  return gangs;
}

const char* WorkerRegistry::StateWord(const Worker& worker) {
  if (worker.lost) return "LOST";
  return worker.connection != nullptr ? "READY" : "DISCONNECTED";
}

ClusterView WorkerRegistry::View() const {
  ClusterView view;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, worker] : workers_) {
    if (worker.lost || worker.connection == nullptr) continue;
    WorkerView entry;
    entry.name = name;
    entry.incarnation = worker.hello.incarnation();
    entry.host = HostOf(worker.hello);
    entry.cpu_level = worker.hello.cpu_level();
    for (const v1::DeviceInfo& device : worker.hello.devices()) {
      const auto holder = worker.holders.find(device.id());
      entry.devices.push_back(
          {device.id(), device.memory_bytes(),
           holder == worker.holders.end() ? "" : holder->second.gang.job()});
    }
    view.workers.push_back(std::move(entry));
  }
  return view;
}

std::vector<v1::WorkerInfo> WorkerRegistry::Infos() const {
  std::vector<v1::WorkerInfo> infos;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, worker] : workers_) {
    v1::WorkerInfo info;
    info.set_name(name);
    info.set_state(StateWord(worker));
    info.set_address(worker.hello.address());
    info.set_devices(worker.hello.devices_size());
    info.set_devices_free(
        std::max<int64_t>(0, worker.hello.devices_size() -
                                 static_cast<int64_t>(worker.holders.size())));
    uint64_t memory = 0;
    for (const v1::DeviceInfo& device : worker.hello.devices()) {
      memory = memory == 0 ? device.memory_bytes()
                           : std::min(memory, device.memory_bytes());
      info.set_device_kind(device.kind());
    }
    info.set_memory_per_device_bytes(memory);
    *info.mutable_last_heartbeat() = ToTimestamp(worker.last_heard);
    for (const auto& [device, holder] : worker.holders) {
      info.add_ranks(absl::StrCat(holder.gang.job(), ":", holder.rank));
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::map<std::string, int64_t> WorkerRegistry::CountByState() const {
  std::map<std::string, int64_t> counts;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, worker] : workers_) ++counts[StateWord(worker)];
  return counts;
}

}  // namespace lockstep
