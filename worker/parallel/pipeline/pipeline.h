// Pipeline: runs micro-batches through this rank's stages of a model, by a list
// of actions (common/model/pipeline_schedule.h). What a stage gives, and the
// gradient that it gets for it, travel while other micro-batches compute.
// A model of one stage is run by the same.
//
// Threads: one. Models, link and what a run is given must outlive it.
// Errors: what the models and the link say; the link is aborted then, as other
// stages wait for what won't come.
#ifndef LOCKSTEP_WORKER_PARALLEL_PIPELINE_PIPELINE_H_
#define LOCKSTEP_WORKER_PARALLEL_PIPELINE_PIPELINE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/pipeline_schedule.h"
#include "worker/dist/peer_link.h"
#include "worker/nn/device_batch.h"
#include "worker/nn/pass_context.h"
#include "worker/nn/transformer_model.h"
#include "worker/parallel/data/data_parallel.h"

namespace lockstep {

// A rank among the stages.
struct PipelinePlace {
  int rank = 0;
  int ranks = 1;
  // Null where there is one rank.
  PeerLink* link = nullptr;
};

// How the micro-batches of one run are computed.
struct PipelineRun {
  Stream& stream;
  // This rank's part of each micro-batch.
  BatchPlace place;
  DataParallel& data_parallel;
  // In host memory; null where this share has none and only takes part. All
  // stages of a share have the same ones.
  std::vector<const MicroBatch*> micro_batches;
  std::function<PassContext(const DeviceBatch&)> context;
  LossSums& sums;
};

class Pipeline {
 public:
  // models: this rank's stages, chunk by chunk.
  Pipeline(const PipelinePlace& place,
           std::vector<const TransformerModel*> models);
  ~Pipeline();

  const PipelinePlace& place() const { return place_; }
  int chunks() const { return static_cast<int>(models_.size()); }
  // Whether this rank has the first, or the last, of all stages.
  bool has_embedding() const { return models_.front()->has_embedding(); }
  bool has_head() const { return models_.back()->has_head(); }

  // Forward and backward: adds to the gradients.
  absl::Status Train(v1::PipelineSchedule schedule, const PipelineRun& run);
  // Forward alone.
  absl::Status Evaluate(const PipelineRun& run);
  // Logits of the run's only micro-batch, on the ranks that have the head;
  // empty elsewhere.
  absl::StatusOr<OwnedTensor> Logits(const PipelineRun& run);

 private:
  enum class Direction : uint8_t { kForward, kBackward };
  // What a stage takes of a micro-batch: its number, in that direction.
  struct Key {
    Direction direction;
    int stage;
    int micro_batch;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.direction, a.stage, a.micro_batch) <
             std::tie(b.direction, b.stage, b.micro_batch);
    }
  };
  struct Message {
    OwnedTensor tensor;
    std::unique_ptr<Work> work;
  };
  // A micro-batch on its way through one of this rank's stages.
  struct UnderWay {
    DeviceBatch batch;
    ModelActivations saved;
  };
  using Kind = PipelineAction::Kind;
  using Actions = std::vector<PipelineAction>;

  int StageOf(int chunk) const { return chunk * place_.ranks + place_.rank; }
  int stages() const { return place_.ranks * chunks(); }
  int RankOf(int stage) const { return stage % place_.ranks; }

  absl::Status RunTraining(const Actions& actions, const PipelineRun& run);
  absl::Status Act(const PipelineAction& action, const PipelineRun& run);
  // The same where this share has no such micro-batch.
  absl::Status Visit(const PipelineAction& action, const PipelineRun& run);
  absl::StatusOr<OwnedTensor> ForwardAll(
      const PipelineRun& run,
      absl::FunctionRef<absl::StatusOr<OwnedTensor>(
          const TransformerModel&, const PassContext&, OwnedTensor)>
          pass);

  // What `action` takes from another rank; none where it takes nothing.
  std::optional<Key> NeededBy(const PipelineAction& action) const;
  // Starts to receive what the next action that takes something takes.
  absl::Status ReceiveAhead(const Actions& actions, size_t next,
                            const PipelineRun& run);
  absl::Status BeginReceive(const Key& key, const PipelineRun& run);
  // Empty where nothing comes.
  absl::StatusOr<OwnedTensor> Take(const std::optional<Key>& key,
                                   const PipelineRun& run);
  absl::Status Send(const Key& key, OwnedTensor tensor);
  // Waits until at most `most` are under way.
  absl::Status AwaitSends(size_t most);
  uint64_t TagOf(const Key& key) const;
  // After a failure: nothing may be under way on memory that goes.
  absl::Status Fail(const absl::Status& status);

  const PipelinePlace place_;
  const std::vector<const TransformerModel*> models_;
  // Runs so far: the same on all ranks.
  uint64_t runs_ = 0;
  std::map<Key, Message> received_;
  std::deque<Message> sent_;
  // By chunk and micro-batch.
  std::map<std::pair<int, int>, UnderWay> under_way_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARALLEL_PIPELINE_PIPELINE_H_
