#include "worker/parallel/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "common/model/pipeline_sends.h"
#include "common/status_macros.h"
#include "worker/dist/slot.h"

namespace lockstep {

Pipeline::Pipeline(const PipelinePlace& place,
                   std::vector<const TransformerModel*> models)
    : place_(place), models_(std::move(models)) {}

Pipeline::~Pipeline() = default;

std::optional<Pipeline::Key> Pipeline::NeededBy(
    const PipelineAction& action) const {
  const int stage = StageOf(action.chunk);
  switch (action.kind) {
    case Kind::kForward:
      if (stage == 0) return std::nullopt;
      return Key{Direction::kForward, stage, action.micro_batch};
    case Kind::kBackward:
    case Kind::kBackwardInput:
      if (stage + 1 == stages()) return std::nullopt;
      return Key{Direction::kBackward, stage, action.micro_batch};
    case Kind::kBackwardWeights:
      break;
  }
  return std::nullopt;
}

uint64_t Pipeline::TagOf(const Key& key) const {
  return SlotOfValues({runs_, static_cast<uint64_t>(key.direction),
                       static_cast<uint64_t>(key.stage),
                       static_cast<uint64_t>(key.micro_batch)});
}

absl::Status Pipeline::BeginReceive(const Key& key, const PipelineRun& run) {
  const MicroBatch* batch = run.micro_batches[key.micro_batch];
  if (batch == nullptr || received_.count(key) > 0) return absl::OkStatus();
  // As the stage beside it allocates what it sends.
  const DeviceBatch none;
  const PassContext context = run.context(none);
  Message message;
  ASSIGN_OR_RETURN(message.tensor,
                   context.Activation(run.place.ResidualRows(batch->rows()),
                                      models_.front()->width()));
  const int from = RankOf(key.direction == Direction::kForward ? key.stage - 1
                                                               : key.stage + 1);
  message.work =
      place_.link->Receive(from, TagOf(key), message.tensor->WithPadding());
  received_.emplace(key, std::move(message));
  return absl::OkStatus();
}

absl::Status Pipeline::ReceiveAhead(const Actions& actions, size_t next,
                                    const PipelineRun& run) {
  for (; next < actions.size(); ++next) {
    const std::optional<Key> key = NeededBy(actions[next]);
    if (key.has_value()) return BeginReceive(*key, run);
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnedTensor> Pipeline::Take(const std::optional<Key>& key,
                                           const PipelineRun& run) {
  if (!key.has_value()) return OwnedTensor();
  RETURN_IF_ERROR(BeginReceive(*key, run));
  const auto found = received_.find(*key);
  RETURN_IF_ERROR(found->second.work->Wait());
  OwnedTensor tensor = std::move(found->second.tensor);
  received_.erase(found);
  return tensor;
}

absl::Status Pipeline::AwaitSends(size_t most) {
  while (sent_.size() > most) {
    RETURN_IF_ERROR(sent_.front().work->Wait());
    sent_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status Pipeline::Send(const Key& key, OwnedTensor tensor) {
  Message message;
  message.work =
      place_.link->Send(RankOf(key.stage), TagOf(key), tensor->WithPadding());
  message.tensor = std::move(tensor);
  sent_.push_back(std::move(message));
  return AwaitSends(MostSendsUnderWay(place_.ranks, chunks()));
}

absl::Status Pipeline::Act(const PipelineAction& action,
                           const PipelineRun& run) {
  const TransformerModel& model = *models_[action.chunk];
  const int stage = StageOf(action.chunk);
  const std::pair<int, int> place = {action.chunk, action.micro_batch};
  if (action.kind == Kind::kForward) {
    UnderWay& way = under_way_[place];
    ASSIGN_OR_RETURN(
        way.batch,
        StageBatch(run.stream, *run.micro_batches[action.micro_batch],
                   run.place));
    ASSIGN_OR_RETURN(OwnedTensor input, Take(NeededBy(action), run));
    ASSIGN_OR_RETURN(OwnedTensor output,
                     model.Forward(run.context(way.batch), std::move(input),
                                   way.saved, run.data_parallel));
    if (output.empty()) return absl::OkStatus();
    return Send({Direction::kForward, stage + 1, action.micro_batch},
                std::move(output));
  }
  UnderWay& way = under_way_.at(place);
  const PassContext context = run.context(way.batch);
  if (action.kind == Kind::kBackwardWeights) {
    RETURN_IF_ERROR(
        model.BackwardMatrices(context, way.saved, run.data_parallel));
    under_way_.erase(place);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(OwnedTensor doutput, Take(NeededBy(action), run));
  OwnedTensor dinput;
  if (action.kind == Kind::kBackward) {
    ASSIGN_OR_RETURN(
        dinput, model.Backward(context, way.saved, std::move(doutput), run.sums,
                               run.data_parallel));
    under_way_.erase(place);
  } else {
    ASSIGN_OR_RETURN(dinput,
                     model.BackwardInput(context, way.saved, std::move(doutput),
                                         run.sums, run.data_parallel));
  }
  if (dinput.empty()) return absl::OkStatus();
  return Send({Direction::kBackward, stage - 1, action.micro_batch},
              std::move(dinput));
}

absl::Status Pipeline::Visit(const PipelineAction& action,
                             const PipelineRun& run) {
  const TransformerModel& model = *models_[action.chunk];
  switch (action.kind) {
    case Kind::kForward:
      return model.VisitForward(run.data_parallel);
    case Kind::kBackward:
      return model.VisitBackward(run.data_parallel);
    case Kind::kBackwardInput:
      return model.VisitBackwardInput(run.data_parallel);
    case Kind::kBackwardWeights:
      return model.VisitBackwardMatrices(run.data_parallel);
  }
  return absl::OkStatus();
}

absl::Status Pipeline::RunTraining(const Actions& actions,
                                   const PipelineRun& run) {
  const int last = static_cast<int>(run.micro_batches.size()) - 1;
  for (size_t i = 0; i < actions.size(); ++i) {
    const PipelineAction& action = actions[i];
    run.data_parallel.BeginMicroBatch(action.micro_batch == last
                                          ? DataParallel::Turn::kLast
                                          : DataParallel::Turn::kAccumulate);
    if (run.micro_batches[action.micro_batch] == nullptr) {
      RETURN_IF_ERROR(Visit(action, run));
      continue;
    }
    const std::optional<Key> key = NeededBy(action);
    if (key.has_value()) RETURN_IF_ERROR(BeginReceive(*key, run));
    RETURN_IF_ERROR(ReceiveAhead(actions, i + 1, run));
    RETURN_IF_ERROR(Act(action, run));
  }
  return AwaitSends(0);
}

absl::Status Pipeline::Fail(const absl::Status& status) {
  if (status.ok()) return status;
  if (place_.link != nullptr) place_.link->Abort();
  received_.clear();
  sent_.clear();
  under_way_.clear();
  return status;
}

absl::Status Pipeline::Train(v1::PipelineSchedule schedule,
                             const PipelineRun& run) {
  ++runs_;
  return Fail(
      RunTraining(MakePipelineSchedule(
                      schedule, {place_.rank, place_.ranks, chunks(),
                                 static_cast<int>(run.micro_batches.size())}),
                  run));
}

absl::StatusOr<OwnedTensor> Pipeline::ForwardAll(
    const PipelineRun& run,
    absl::FunctionRef<absl::StatusOr<OwnedTensor>(
        const TransformerModel&, const PassContext&, OwnedTensor)>
        pass) {
  OwnedTensor result;
  for (size_t i = 0; i < run.micro_batches.size(); ++i) {
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const PipelineAction action = {Kind::kForward, static_cast<int>(i),
                                     chunk};
      const TransformerModel& model = *models_[chunk];
      if (run.micro_batches[i] == nullptr) {
        RETURN_IF_ERROR(model.VisitEvaluate(run.data_parallel));
        continue;
      }
      ASSIGN_OR_RETURN(
          const DeviceBatch batch,
          StageBatch(run.stream, *run.micro_batches[i], run.place));
      ASSIGN_OR_RETURN(OwnedTensor input, Take(NeededBy(action), run));
      ASSIGN_OR_RETURN(OwnedTensor output,
                       pass(model, run.context(batch), std::move(input)));
      if (model.has_head()) {
        result = std::move(output);
        continue;
      }
      RETURN_IF_ERROR(
          Send({Direction::kForward, StageOf(chunk) + 1, action.micro_batch},
               std::move(output)));
    }
  }
  RETURN_IF_ERROR(AwaitSends(0));
  return result;
}

absl::Status Pipeline::Evaluate(const PipelineRun& run) {
  ++runs_;
  return Fail(
      ForwardAll(run, [&](const TransformerModel& model,
                          const PassContext& context, OwnedTensor input) {
        return model.Evaluate(context, std::move(input), run.sums,
                              run.data_parallel);
      }).status());
}

absl::StatusOr<OwnedTensor> Pipeline::Logits(const PipelineRun& run) {
  ++runs_;
  absl::StatusOr<OwnedTensor> logits =
      ForwardAll(run, [&](const TransformerModel& model,
                          const PassContext& context, OwnedTensor input) {
        return model.Logits(context, std::move(input), run.data_parallel);
      });
  RETURN_IF_ERROR(Fail(logits.status()));
  return logits;
}

}  // namespace lockstep
