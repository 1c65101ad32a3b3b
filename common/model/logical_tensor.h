// LogicalTensor: what a parameter is, whatever the layout. The list of a
// model's logical tensors is pure: the engine builds from it, the planner
// counts from it, checkpoints are keyed by it.
#ifndef LOCKSTEP_COMMON_MODEL_LOGICAL_TENSOR_H_
#define LOCKSTEP_COMMON_MODEL_LOGICAL_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

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
  Initializer initializer = Initializer::kZeros;
  double init_scale = 0.0;
  // Whether weight decay acts on it (matrices and embeddings); LARS and LAMB
  // scale only these.
  bool decay = false;
  // Frozen tensors have no gradient and no optimizer state.
  bool trainable = true;
  // Optimizer group, for per-group rates; 0 is the only one so far.
  int optimizer_group = 0;
  // Unit that computes with it: 0 the embedding, 1 .. L the blocks, L + 1 the
  // final norm and head. Units are gathered, freed and bucketed as wholes.
  int unit = 0;

  int64_t elements() const;
};

// All logical tensors in storage order: by unit, and within a unit so that
// tensors which are multiplied as one matrix (q, k, v; gate, up) are adjacent.
// A tied head has no tensor of its own.
std::vector<LogicalTensor> DescribeModel(const ModelSpec& spec);

// Number of parameters, each logical tensor once.
int64_t ParameterCount(const ModelSpec& spec);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MODEL_LOGICAL_TENSOR_H_
