// Backward pass of attention (FlashAttention-2, algorithm 2) for one segment
// and one key head: key blocks outside with their dk and dv, query blocks
// inside; dq of the whole segment is summed in fp32 scratch.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_BACKWARD_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_BACKWARD_H_

#include <stdint.h>

#include "kernels/cpu/level/attention_block.h"
#include "kernels/cpu/level/exp.h"
#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/philox.h"
#include "kernels/cpu/level/simd.h"
#include "kernels/cpu/level/tile_product.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

struct BackwardScratch {
  float* weights;      // (kQueryBlock, kKeyBlock): scores, then softmax weights
  float* slopes;       // (kQueryBlock, kKeyBlock): gradients of those
  float* queries;      // (kQueryBlock, padded)
  float* dout;         // (kQueryBlock, padded)
  float* keys_turned;  // (padded, kKeyBlock)
  float* values_turned;  // (padded, kKeyBlock)
  float* keys;           // (kKeyBlock, padded)
  float* dk;             // (kKeyBlock, padded)
  float* dv;             // (kKeyBlock, padded)
  float* dq;             // (rows, padded)
  float* delta;          // (rows,) dout . out

  static int64_t Floats(int64_t rows, int64_t width) {
    const int64_t padded = RoundUpToLanes(width);
    return 2 * kQueryBlock * kKeyBlock + 2 * kQueryBlock * padded +
           5 * kKeyBlock * padded + rows * padded + rows;
  }
  BackwardScratch(float* base, int64_t rows, int64_t width) {
    const int64_t padded = RoundUpToLanes(width);
    weights = base;
    slopes = weights + kQueryBlock * kKeyBlock;
    queries = slopes + kQueryBlock * kKeyBlock;
    dout = queries + kQueryBlock * padded;
    keys_turned = dout + kQueryBlock * padded;
    values_turned = keys_turned + padded * kKeyBlock;
    keys = values_turned + padded * kKeyBlock;
    dk = keys + kKeyBlock * padded;
    dv = dk + kKeyBlock * padded;
    dq = dv + kKeyBlock * padded;
    delta = dq + rows * padded;
  }
};

// From scores and d(dropped weights) of one row: `weights` becomes the dropped
// softmax weights, `slopes` the gradient of the unscaled scores.
LOCKSTEP_INLINE void GradientRow(float* weights, float* slopes, int64_t columns,
                                 KeyRange visible, float scale, float lse,
                                 float delta, const float* factors) {
  const I32 lane = LaneNumbers();
  for (int64_t c = 0; c < columns; c += kLanes) {
    F32 p = Exp(Fma(Load(weights + c, Whole{}), Splat(scale), Splat(-lse)));
    F32 dp = Load(slopes + c, Whole{});
    if (c < visible.begin || c + kLanes > visible.end) {
      const I32 column = lane + static_cast<int32_t>(c);
      const I32 seen = column >= static_cast<int32_t>(visible.begin) &&
                       column < static_cast<int32_t>(visible.end);
      p = seen ? p : F32{};
      dp = seen ? dp : F32{};
    }
    F32 dropped = p;
    if (factors != nullptr) {
      const F32 factor = Load(factors + c, Whole{});
      dropped = p * factor;
      dp = dp * factor;
    }
    Store(weights + c, dropped, Whole{});
    Store(slopes + c, p * (dp - delta) * scale, Whole{});
  }
}

template <typename T>
void StoreRows(const float* from, int64_t padded, int64_t rows, int64_t width,
               T* to, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) {
    PrefetchRow(to + (row + kPrefetchRows) * stride, width);
    ForEach(width, [&](int64_t d, auto part) {
      Store(to + row * stride + d, Load(from + row * padded + d, part), part);
    });
  }
}

template <typename T>
void AttentionBackward(const AttentionGroup& group, float* memory) {
  const int64_t width = group.width;
  const int64_t padded = RoundUpToLanes(width);
  const int64_t queries = group.queries;
  const int64_t rows = group.heads * queries;
  const int64_t vectors = padded / kLanes;
  const BackwardScratch scratch(memory, rows, width);
  const T* q = static_cast<const T*>(group.q);
  const T* dout = static_cast<const T*>(group.dout);
  for (int64_t i = 0; i < rows * padded; ++i) scratch.dq[i] = 0.0f;
  for (int64_t head = 0; head < group.heads; ++head) {
    for (int64_t i = 0; i < queries; ++i) {
      const T* out = static_cast<const T*>(group.out) + i * group.out_stride +
                     head * width;
      const T* grad = dout + i * group.dout_stride + head * width;
      PrefetchRow(out + kPrefetchRows * group.out_stride, width);
      PrefetchRow(grad + kPrefetchRows * group.dout_stride, width);
      scratch.delta[head * queries + i] =
          SumOver(width, [&](int64_t d, auto part) {
            return Load(out + d, part) * Load(grad + d, part);
          });
    }
  }

  for (int64_t first = 0; first < group.keys; first += kKeyBlock) {
    const int64_t count = Least(kKeyBlock, group.keys - first);
    const T* k = static_cast<const T*>(group.k) + first * group.k_stride;
    const T* v = static_cast<const T*>(group.v) + first * group.v_stride;
    PackTransposed(k, group.k_stride, count, width, scratch.keys_turned);
    PackTransposed(v, group.v_stride, count, width, scratch.values_turned);
    PackRows(k, group.k_stride, count, width, 1.0f, scratch.keys, padded);
    for (int64_t i = 0; i < kKeyBlock * padded; ++i) scratch.dk[i] = 0.0f;
    for (int64_t i = 0; i < kKeyBlock * padded; ++i) scratch.dv[i] = 0.0f;
    for (int64_t head = 0; head < group.heads; ++head) {
      RowDropout dropout = group.dropout;
      dropout.key += static_cast<uint64_t>(head);
      for (int64_t begin = 0; begin < queries; begin += kQueryBlock) {
        const int64_t block = Least(kQueryBlock, queries - begin);
        const int64_t least = VisibleKeys(group, begin).begin;
        const int64_t most = VisibleKeys(group, begin + block - 1).end;
        const int64_t used = Least(count, most - first);
        if (used <= 0 || least >= first + count) continue;
        const int64_t key_vectors = RoundUpToLanes(used) / kLanes;
        PackRows(q + begin * group.q_stride + head * width, group.q_stride,
                 block, width, 1.0f, scratch.queries, padded);
        PackRows(dout + begin * group.dout_stride + head * width,
                 group.dout_stride, block, width, 1.0f, scratch.dout, padded);
        Multiply<Left::kPlain, Result::kWrite>(
            block, key_vectors, width, {scratch.queries, padded},
            {scratch.keys_turned, kKeyBlock}, {scratch.weights, kKeyBlock});
        Multiply<Left::kPlain, Result::kWrite>(
            block, key_vectors, width, {scratch.dout, padded},
            {scratch.values_turned, kKeyBlock}, {scratch.slopes, kKeyBlock});
        for (int64_t r = 0; r < block; ++r) {
          const int64_t i = begin + r;
          const KeyRange seen = VisibleKeys(group, i);
          const KeyRange visible = {Most(0, seen.begin - first),
                                    Most(0, seen.end - first)};
          float buffer[kKeyBlock + kFactorSlack];
          const float* factors = nullptr;
          if (group.dropout.active) {
            factors = Factors(dropout, i, group.key_position + first,
                              key_vectors * kLanes, buffer);
          }
          GradientRow(scratch.weights + r * kKeyBlock,
                      scratch.slopes + r * kKeyBlock, key_vectors * kLanes,
                      visible, group.scale,
                      group.lse[head * group.lse_stride + i],
                      scratch.delta[head * queries + i], factors);
        }
        Multiply<Left::kTransposed, Result::kAdd>(
            used, vectors, block, {scratch.weights, kKeyBlock},
            {scratch.dout, padded}, {scratch.dv, padded});
        Multiply<Left::kTransposed, Result::kAdd>(
            used, vectors, block, {scratch.slopes, kKeyBlock},
            {scratch.queries, padded}, {scratch.dk, padded});
        Multiply<Left::kPlain, Result::kAdd>(
            block, vectors, used, {scratch.slopes, kKeyBlock},
            {scratch.keys, padded},
            {scratch.dq + (head * queries + begin) * padded, padded});
      }
    }
    StoreRows(scratch.dk, padded, count, width,
              static_cast<T*>(group.dk) + first * group.dk_stride,
              group.dk_stride);
    StoreRows(scratch.dv, padded, count, width,
              static_cast<T*>(group.dv) + first * group.dv_stride,
              group.dv_stride);
  }
  for (int64_t head = 0; head < group.heads; ++head) {
    StoreRows(scratch.dq + head * queries * padded, padded, queries, width,
              static_cast<T*>(group.dq) + head * width, group.dq_stride);
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_BACKWARD_H_
