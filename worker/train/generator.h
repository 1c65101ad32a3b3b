// Continues a prompt with a trained language model.
#ifndef LOCKSTEP_WORKER_TRAIN_GENERATOR_H_
#define LOCKSTEP_WORKER_TRAIN_GENERATOR_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lockstep/v1/job.pb.h"
#include "worker/data/tokenizer.h"
#include "worker/train/rank_context.h"
#include "worker/train/training_state.h"

namespace lockstep {

// Samples token by token, hands each one's bytes to `emit`, and stops at the
// end token or after max_tokens. The model sees the last `context_length`
// tokens, as many as it was trained on. Equal seeds give equal text.
absl::Status Generate(const RankContext& context, const TrainingState& state,
                      const Tokenizer& tokenizer,
                      const v1::GenerateAction& action, int64_t context_length,
                      const std::function<void(const std::string&)>& emit);

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_TRAIN_GENERATOR_H_
