#include "kernels/cpu/level/attention_backward.h"
#include "kernels/cpu/level/attention_forward.h"
#include "kernels/cpu/level/kernels.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

const AttentionKernels kAttentionKernels = {
    .forward = {AttentionForward<float>, AttentionForward<Bf16>},
    .forward_scratch = ForwardScratch::Floats,
    .backward = {AttentionBackward<float>, AttentionBackward<Bf16>},
    .backward_scratch = BackwardScratch::Floats,
};

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL
