// The vectorised inner kernels, as one table per instruction level. Their
// sources are compiled three times (-march=x86-64-v2, -v3, -v4), each into its
// own namespace; they include C headers and headers of this folder only, so
// that no inline function compiled for a high level can be linked into common
// paths.
//
// Kernels are single-threaded, trust their arguments and take plain pointers.
// Strides count elements. Arrays of two are by type: fp32, bf16.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_KERNELS_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_KERNELS_H_

#include <stdint.h>

namespace lockstep::cpu {

struct Bf16 {
  uint16_t bits;
};

// The dropout of some rows. Element e of row n is kept when word e % 4 of
// Philox(key, counter (e / 4, position[n], sample[n], step)) >= threshold.
struct RowDropout {
  uint64_t key = 0;
  uint32_t step = 0;
  uint32_t threshold = 0;
  float scale = 1.0f;  // of what is kept
  bool active = false;
  const uint32_t* sample = nullptr;
  const int32_t* position = nullptr;
};

// n contiguous elements each. Outputs may be inputs, unless said otherwise.
struct ElementwiseKernels {
  void (*fill[2])(float value, void* out, int64_t n);
  void (*to_bf16)(const float* x, Bf16* out, int64_t n);
  void (*to_fp32)(const Bf16* x, float* out, int64_t n);
  void (*add[2])(const void* a, const void* b, void* out, int64_t n);
  void (*scale)(float factor, float* x, int64_t n);
  // out = a * x + b * y
  void (*blend[2])(float a, const void* x, float b, const void* y, void* out,
                   int64_t n);
  void (*gelu_forward[2])(const void* x, void* out, int64_t n);
  void (*gelu_backward[2])(const void* dout, const void* x, void* dx,
                           int64_t n);
  void (*swiglu_forward[2])(const void* gate, const void* up, void* out,
                            int64_t n);
  void (*swiglu_backward[2])(const void* dout, const void* gate, const void* up,
                             void* dgate, void* dup, int64_t n);
  // cos and sin of position * frequency[i], i < n; sin times `direction`.
  void (*rotary_angles)(double position, const double* frequency,
                        float direction, float* cosines, float* sines,
                        int64_t n);
  // Turns pairs (i, i + half) of each of the heads of one row.
  void (*rotary_row[2])(void* x, int64_t heads, int64_t half,
                        const float* cosines, const float* sines);
};

struct DropoutKernels {
  // Factors (0 or scale) of elements [first, first + n) of row `row`.
  // `factors` has room for n + kFactorSlack values; the first one's address is
  // returned.
  const float* (*factors)(const RowDropout& dropout, int64_t row, int64_t first,
                          int64_t n, float* factors);
  // out[i] = x[i] * factor of element first + i.
  void (*row[2])(const RowDropout& dropout, int64_t row, int64_t first,
                 const void* x, void* out, int64_t n);
};
inline constexpr int64_t kFactorSlack = 72;

struct NormRows {
  int64_t cols = 0;
  bool centred = true;  // LayerNorm; RMSNorm otherwise
  float epsilon = 0.0f;
  const float* weight = nullptr;
  const float* bias = nullptr;  // may be null
  float* mean = nullptr;        // of all rows; null if not centred
  float* rstd = nullptr;        // of all rows
};

struct NormKernels {
  // One row, number `row`, of norm.
  void (*forward[2])(const NormRows& norm, int64_t row, const void* x,
                     void* out);
  // sum = residual + dropped branch, then the same on it.
  void (*residual_forward[2])(const NormRows& norm, const RowDropout& dropout,
                              int64_t row, const void* residual,
                              const void* branch, void* sum, void* out);
  // dresidual may be null, or dx. Adds to dweight and dbias (may be null).
  void (*backward[2])(const NormRows& norm, int64_t row, const void* dout,
                      const void* x, const void* dresidual, void* dx,
                      float* dweight, float* dbias);
};

struct ReduceKernels {
  // out[j] (+)= sum over rows of x[:, j], j < cols.
  void (*column_sum[2])(const void* x, int64_t stride, int64_t rows,
                        int64_t cols, bool accumulate, float* out);
  // Sum of squares in fp32 lanes: call on blocks of bounded length.
  double (*square_sum)(const float* x, int64_t n);
};

struct EmbeddingKernels {
  // out = dropped (token_row + position_row), columns [first, first + n).
  // Indexed by type of weights, then of out. A null row adds nothing.
  void (*forward[2][2])(const RowDropout& dropout, int64_t row,
                        const void* token_row, const void* position_row,
                        void* out, int64_t n);
  // grad += dropped dout, columns [first, first + n); a null one is left out.
  void (*backward[2])(const RowDropout& dropout, int64_t row, int64_t first,
                      const void* dout, float* token_gradient,
                      float* position_gradient, int64_t n);
  // out = factor * x
  void (*scaled_copy[2])(float factor, const void* x, void* out, int64_t n);
  // sum += x
  void (*accumulate[2])(const void* x, float* sum, int64_t n);
  // out = factor * x, x fp32
  void (*scaled_store[2])(float factor, const float* x, void* out, int64_t n);
};

struct CrossEntropyKernels {
  // Loss of one row of n logits, which become their gradient (softmax -
  // one-hot) * factor if `in_place`. *correct may be null.
  float (*row[2])(void* logits, int64_t n, int64_t target, bool in_place,
                  float factor, int32_t* correct);
  // The same in two steps, for n logits out of more; target < 0: it is not
  // among them. `statistics`: see kernels/ops/cross_entropy.h.
  void (*statistics[2])(const void* logits, int64_t n, int64_t target,
                        float* statistics);
  // Logits become their gradient, given the largest of all, the sum of all
  // exp(logit - largest), and the target's logit.
  void (*gradient[2])(void* logits, int64_t n, int64_t target, float largest,
                      float sum, float chosen, float factor);
  // exp(x), as the other kernels compute it.
  float (*exponential)(float x);
};

struct AdamStep {
  float beta1, beta2, epsilon, weight_decay;
  float learning_rate, clip_factor;
  float inverse_correction1;       // 1 / bias correction of the first moment
  float inverse_root_correction2;  // 1 / sqrt of the second's
};

struct MomentumStep {
  float momentum, weight_decay;
  float learning_rate, clip_factor;
  float ratio;  // LARS; 1 otherwise
};

// `compute` is the bf16 copy of the parameters, or null.
struct OptimizerKernels {
  void (*adamw)(const AdamStep& step, float* parameter, const float* gradient,
                float* first_moment, float* second_moment, Bf16* compute,
                int64_t n);
  void (*sgd)(const MomentumStep& step, float* parameter, const float* gradient,
              float* momentum, Bf16* compute, int64_t n);
  void (*lars)(const MomentumStep& step, float* parameter,
               const float* gradient, float* momentum, Bf16* compute,
               int64_t n);
  // Writes the update over the gradient.
  void (*lamb_moments)(const AdamStep& step, const float* parameter,
                       float* gradient, float* first_moment,
                       float* second_moment, int64_t n);
  // parameter -= rate * update
  void (*lamb_apply)(float rate, float* parameter, const float* update,
                     Bf16* compute, int64_t n);
};

// Attention of the query heads that share one key head, within one segment.
// Pointers are at the segment's first row and the first of those heads.
struct AttentionGroup {
  int64_t heads = 0;  // query heads, side by side in q
  int64_t width = 0;  // of a head
  int64_t queries = 0;
  int64_t keys = 0;
  float scale = 0.0f;
  bool causal = true;
  int64_t window = 0;  // 0 is all
  int64_t shift = 0;   // query i is at the place of key i + shift

  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  void* out = nullptr;
  int64_t out_stride = 0;
  float* lse = nullptr;
  int64_t lse_stride = 0;  // from head to head

  // Of the first head; the next one's key is one more. Element is the key's
  // position in its sample, which is key_position for the first key.
  RowDropout dropout;
  int64_t key_position = 0;

  // Backward only.
  const void* dout = nullptr;
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  int64_t dout_stride = 0, dq_stride = 0, dk_stride = 0, dv_stride = 0;
};

struct AttentionKernels {
  // Queries [begin, end). Scratch: forward_scratch(heads * (end - begin),
  // width) floats.
  void (*forward[2])(const AttentionGroup& group, int64_t begin, int64_t end,
                     float* scratch);
  int64_t (*forward_scratch)(int64_t rows, int64_t width);
  // The whole segment. Scratch: backward_scratch(heads * queries, width).
  void (*backward[2])(const AttentionGroup& group, float* scratch);
  int64_t (*backward_scratch)(int64_t rows, int64_t width);
};

struct LevelKernels {
  const ElementwiseKernels* elementwise;
  const DropoutKernels* dropout;
  const NormKernels* norm;
  const ReduceKernels* reduce;
  const EmbeddingKernels* embedding;
  const CrossEntropyKernels* cross_entropy;
  const OptimizerKernels* optimizer;
  const AttentionKernels* attention;
};

#define LOCKSTEP_DECLARE_LEVEL(level)                    \
  namespace level {                                      \
  extern const ElementwiseKernels kElementwiseKernels;   \
  extern const DropoutKernels kDropoutKernels;           \
  extern const NormKernels kNormKernels;                 \
  extern const ReduceKernels kReduceKernels;             \
  extern const EmbeddingKernels kEmbeddingKernels;       \
  extern const CrossEntropyKernels kCrossEntropyKernels; \
  extern const OptimizerKernels kOptimizerKernels;       \
  extern const AttentionKernels kAttentionKernels;       \
  }
LOCKSTEP_DECLARE_LEVEL(v2)
LOCKSTEP_DECLARE_LEVEL(v3)
LOCKSTEP_DECLARE_LEVEL(v4)
#undef LOCKSTEP_DECLARE_LEVEL

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_KERNELS_H_
