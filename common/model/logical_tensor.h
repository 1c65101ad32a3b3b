// LogicalTensor: what a parameter is, whatever the layout. The list of a
// model's logical tensors is pure: the engine builds from it, the planner
// counts from it, checkpoints are keyed by it.
#ifndef LOCKSTEP_COMMON_MODEL_LOGICAL_TENSOR_H_
#define LOCKSTEP_COMMON_MODEL_LOGICAL_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/spec/model_spec.h"

namespace lockstep {

// How initial values are made: pure functions of (seed, name, element).
enum class Initializer : uint8_t {
  kZeros,
  kOnes,
  // Normal, standard deviation `init_scale`.
  kNormal,
};

struct LogicalTensor {
  // Global name, "blocks.3.attention.q.weight". Never changes: stored in
  // checkpoints.
  std::string name;
  // Global shape; linear weights are (out, in).
  std::vector<int64_t> shape;
  // What this rank holds of it: all, or along dim `split_dim` the extents from
  // `split_begin` on that `held_shape` says.
  std::vector<int64_t> held_shape;
  int split_dim = 0;
  int64_t split_begin = 0;
  // Number among the model's logical tensors, whatever part a rank holds.
  int index = 0;
  // Whether this rank speaks for its part where several ranks of one replica
  // hold the same: it alone adds it to norms and writes it to checkpoints.
  bool counted = true;
  // Whether its gradient is a sum over the ranks of tensor parallelism, each of
  // which makes a part of it.
  bool summed_over_tp = false;
  // Whether the first and the last pipeline stage both hold it, tied as it is,
  // and its gradient is the sum of theirs.
  bool on_two_stages = false;
  Initializer initializer = Initializer::kZeros;
  double init_scale = 0.0;
  // Whether weight decay acts on it (matrices and embeddings); LARS and LAMB
  // scale only these.
  bool decay = false;
  // Frozen tensors have no gradient and no optimizer state.
  bool trainable = true;
  // Optimizer group, for per-group rates; 0 is the only one so far.
  int optimizer_group = 0;
  // Unit that computes with it here: 0 the embedding, 1 .. L the blocks, L + 1
  // the final norm and head. Units are gathered, freed and bucketed as wholes.
  int unit = 0;

  // Of all of it, and of what this rank holds.
  int64_t elements() const;
  int64_t held_elements() const;
};

// Elements [begin, begin + count) of what a rank holds of `tensor`, as the runs
// in which they lie in the whole tensor: calls run(offset in the whole, offset
// in what is held, elements) for each, in order.
void ForEachRun(
    const LogicalTensor& tensor, int64_t begin, int64_t count,
    absl::FunctionRef<void(int64_t whole, int64_t held, int64_t elements)> run);

// All logical tensors in storage order: by unit, and within a unit so that
// tensors which are multiplied as one matrix (q, k, v; gate, up) are adjacent.
// A tied head has no tensor of its own.
std::vector<LogicalTensor> DescribeModel(const ModelSpec& spec);

// Number of parameters, each logical tensor once.
int64_t ParameterCount(const ModelSpec& spec);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_LOGICAL_TENSOR_H_
