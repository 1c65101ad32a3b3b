// lockstep-rank: one training process, started by the worker only. It fetches
// its assignment, joins its gang, does its work and says how it ended.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "kernels/device.h"
#include "worker/agent/rank_channel.h"
#include "worker/dist/device_mesh.h"
#include "worker/dist/gloo_group_factory.h"
#include "worker/train/actions.h"
#include "worker/train/failure.h"
#include "worker/train/gang_data.h"
#include "worker/train/rank_context.h"
#include "worker/train/trainer.h"

namespace lockstep {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(30);
// To meet, and then to connect: together less than the time after which a rank
// that says nothing counts as hung.
constexpr absl::Duration kJoinTimeout = absl::Seconds(45);
constexpr absl::Duration kLastWordTimeout = absl::Seconds(10);

class ChannelReporter : public Reporter {
 public:
  explicit ChannelReporter(RankChannel& channel) : channel_(channel) {}
  void Report(v1::RankReport report) override {
    channel_.Report(std::move(report));
  }
  void SetProgress(int64_t step, v1::Progress progress) override {
    channel_.SetProgress(step, std::move(progress));
  }

 private:
  RankChannel& channel_;
};

absl::StatusOr<CpuLevel> LevelOf(v1::CpuLevel level) {
  switch (level) {
    case v1::CPU_LEVEL_X86_64_V2:
      return CpuLevel::kV2;
    case v1::CPU_LEVEL_X86_64_V3:
      return CpuLevel::kV3;
    case v1::CPU_LEVEL_X86_64_V4:
      return CpuLevel::kV4;
    default:
      return absl::InternalError(
          absl::StrCat("the assignment's CPU level is ", level,
                       ": this rank knows x86-64-v2, v3 and v4"));
  }
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(
    const v1::RankAssignment& assignment) {
  DeviceOptions options;
  options.memory_limit_bytes =
      static_cast<int64_t>(assignment.memory_limit_bytes());
  options.threads = static_cast<int>(assignment.threads());
  ASSIGN_OR_RETURN(options.cpu_level, LevelOf(assignment.cpu_level()));
  options.passive_waiting = assignment.host_ranks_size() > 1;
  return MakeCpuDevice(options);
}

absl::Status Train(const RankContext& context,
                   const v1::RankAssignment& assignment, RankChannel& channel,
                   DeviceMesh& mesh) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PreparedData> data,
                   OpenGangData(context, assignment, channel.store()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                   Trainer::Create(context, assignment, *data));
  const absl::Status status = trainer->Run();
  // What is still under way works on the trainer's tensors, which go next.
  if (!status.ok()) mesh.Abort();
  return status;
}

absl::Status RunAssignment(RankChannel& channel) {
  const v1::RankAssignment& assignment = channel.assignment();
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   MakeDevice(assignment));
  GlooGroupFactoryOptions group_options;
  group_options.store = &channel.store();
  group_options.allocator = &device->allocator();
  group_options.connect_timeout = kJoinTimeout;
  if (!assignment.data_address().empty()) {
    group_options.address = assignment.data_address();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<GlooGroupFactory> factory,
                   GlooGroupFactory::Create(group_options));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMesh> mesh,
                   DeviceMesh::Create(
                       assignment.layout(), static_cast<int>(assignment.rank()),
                       static_cast<int>(assignment.world_size()), *factory));
  ChannelReporter reporter(channel);
  const RankContext context = {
      GroupsOf(*mesh),
      *device,
      assignment.layout(),
      {assignment.data_share_index(), assignment.data_share_count()},
      reporter,
      RealClock()};
  if (assignment.spec().has_action()) {
    return RunAction(context, assignment, channel.store());
  }
  return Train(context, assignment, channel, *mesh);
}

int Main() {
  const char* socket = std::getenv("LOCKSTEP_RANK_SOCKET");
  const char* token = std::getenv("LOCKSTEP_RANK_TOKEN");
  if (socket == nullptr || token == nullptr) {
    std::cerr << "lockstep-rank is started by lockstep-worker only\n";
    return 2;
  }
  absl::StatusOr<std::unique_ptr<RankChannel>> channel =
      RankChannel::Connect(socket, token, kConnectTimeout);
  if (!channel.ok()) {
    LOG(ERROR) << "no line to the worker: " << channel.status().message();
    return kRankExitAborted;
  }
  const v1::RankAssignment& assignment = (*channel)->assignment();
  SetLogContext("lockstep-rank",
                absl::StrCat("job=", assignment.gang().job(),
                             " generation=", assignment.gang().generation(),
                             " rank=", assignment.rank()));
  LOG(INFO) << "starts: one of " << assignment.world_size() << " ranks, on "
            << assignment.device() << " of " << assignment.worker() << ", "
            << assignment.threads() << " threads, process " << getpid();
  const absl::Status status = RunAssignment(**channel);
  if (status.ok()) {
    LOG(INFO) << "done";
    const absl::Status sent = (*channel)->Finish(kLastWordTimeout);
    if (sent.ok()) return kRankExitDone;
    LOG(ERROR) << "could not tell the worker of the end: " << sent.message();
    return kRankExitAborted;
  }
  LOG(ERROR) << status.message();
  const absl::Status sent =
      (*channel)->Fail(CauseOf(status), std::string(status.message()),
                       IsSecondary(status), kLastWordTimeout);
  if (!sent.ok()) LOG(ERROR) << "could not tell the worker: " << sent.message();
  return kRankExitFailed;
}

}  // namespace
}  // namespace lockstep

int main() {
  // Destructors of process groups would wait for peers that may be gone.
  const int code = lockstep::Main();
  std::cerr.flush();
  _exit(code);
}
