// Forward pass of attention (FlashAttention-2, algorithm 1): key blocks
// outside, query blocks inside, with the running maximum, sum and output of
// every row.
#ifndef LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_FORWARD_H_
#define LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_FORWARD_H_

#include <stdint.h>

#include "kernels/cpu/level/attention_block.h"
#include "kernels/cpu/level/exp.h"
#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/level/philox.h"
#include "kernels/cpu/level/simd.h"
#include "kernels/cpu/level/tile_product.h"

namespace lockstep::cpu::LOCKSTEP_LEVEL {

// Where the parts of a thread's scratch lie.
struct ForwardScratch {
  float* scores;   // (kQueryBlock, kKeyBlock)
  float* keys;     // (width, kKeyBlock), transposed
  float* values;   // (kKeyBlock, padded)
  float* queries;  // (rows, padded), times the softmax scale
  float* out;      // (rows, padded), not yet divided by the sums
  float* most;     // (rows,) largest score so far
  float* sums;     // (rows,) of e^(score - most)

  static int64_t Floats(int64_t rows, int64_t width) {
    const int64_t padded = RoundUpToLanes(width);
    return kQueryBlock * kKeyBlock + padded * kKeyBlock + kKeyBlock * padded +
           2 * rows * padded + 2 * rows;
  }
  ForwardScratch(float* base, int64_t rows, int64_t width) {
    const int64_t padded = RoundUpToLanes(width);
    scores = base;
    keys = scores + kQueryBlock * kKeyBlock;
    values = keys + padded * kKeyBlock;
    queries = values + kKeyBlock * padded;
    out = queries + rows * padded;
    most = out + rows * padded;
    sums = most + rows;
  }
};

// One row's scores of `columns` keys become e^(score - most), 0 outside
// [visible.begin, visible.end); updates the row's maximum, sum and output.
LOCKSTEP_INLINE void SoftmaxRow(float* scores, int64_t columns,
                                KeyRange visible, float* most, float* sum,
                                float* out, int64_t padded) {
  const F32 lowest = Splat(-__builtin_inff());
  const I32 lane = LaneNumbers();
  const int64_t begin = visible.begin / kLanes * kLanes;
  const int64_t end = Least(columns, RoundUpToLanes(visible.end));
  // Vectors that hold unseen keys: their scores become -infinity.
  const auto mask = [&](int64_t c) {
    const I32 column = lane + static_cast<int32_t>(c);
    const F32 s = Load(scores + c, Whole{});
    Store(scores + c,
          column >= static_cast<int32_t>(visible.begin) &&
                  column < static_cast<int32_t>(visible.end)
              ? s
              : lowest,
          Whole{});
  };
  for (int64_t c = 0; c < columns; c += kLanes) {
    if (c < begin || c >= end) {
      Store(scores + c, lowest, Whole{});
    } else if (c < visible.begin || c + kLanes > visible.end) {
      mask(c);
    }
  }
  F32 largest0 = lowest, largest1 = lowest;
  for (int64_t c = 0; c < columns; c += 2 * kLanes) {
    largest0 = Max(Load(scores + c, Whole{}), largest0);
    if (c + kLanes < columns) {
      largest1 = Max(Load(scores + c + kLanes, Whole{}), largest1);
    }
  }
  const float before = *most;
  const float largest = Largest(Max(largest0, largest1));
  const float now = largest > before ? largest : before;
  // No key seen yet: e^(-infinity + infinity) is no number.
  const float reference = now == -__builtin_inff() ? 0.0f : now;
  F32 sum0 = {}, sum1 = {};
  for (int64_t c = 0; c < columns; c += 2 * kLanes) {
    const F32 p0 = Exp(Load(scores + c, Whole{}) - reference);
    Store(scores + c, p0, Whole{});
    sum0 += p0;
    if (c + kLanes < columns) {
      const F32 p1 = Exp(Load(scores + c + kLanes, Whole{}) - reference);
      Store(scores + c + kLanes, p1, Whole{});
      sum1 += p1;
    }
  }
  float decay = 1.0f;
  if (now != before) {
    decay = Exp(Splat(before - reference))[0];
    for (int64_t d = 0; d < padded; d += kLanes) {
      Store(out + d, Load(out + d, Whole{}) * decay, Whole{});
    }
  }
  *sum = *sum * decay + Sum(sum0 + sum1);
  *most = now;
}

template <typename T>
void AttentionForward(const AttentionGroup& group, int64_t begin, int64_t end,
                      float* memory) {
  const int64_t width = group.width;
  const int64_t padded = RoundUpToLanes(width);
  const int64_t queries = end - begin;
  const int64_t rows = group.heads * queries;
  const ForwardScratch scratch(memory, rows, width);
  const T* q = static_cast<const T*>(group.q) + begin * group.q_stride;
  for (int64_t head = 0; head < group.heads; ++head) {
    PackRows(q + head * width, group.q_stride, queries, width, group.scale,
             scratch.queries + head * queries * padded, padded);
  }
  for (int64_t i = 0; i < rows * padded; ++i) scratch.out[i] = 0.0f;
  for (int64_t i = 0; i < rows; ++i) {
    scratch.most[i] = -__builtin_inff();
    scratch.sums[i] = 0.0f;
  }

  const KeyRange all = {VisibleKeys(group, begin).begin,
                        VisibleKeys(group, end - 1).end};
  for (int64_t first = all.begin / kKeyBlock * kKeyBlock; first < all.end;
       first += kKeyBlock) {
    const int64_t count = Least(kKeyBlock, group.keys - first);
    PackTransposed(static_cast<const T*>(group.k) + first * group.k_stride,
                   group.k_stride, count, width, scratch.keys);
    PackRows(static_cast<const T*>(group.v) + first * group.v_stride,
             group.v_stride, count, width, 1.0f, scratch.values, padded);
    for (int64_t row = 0; row < rows; row += kQueryBlock) {
      // A query block may hold rows of several heads; `i` is a row's query.
      const int64_t block = Least(kQueryBlock, rows - row);
      int64_t least = group.keys, most = 0;
      for (int64_t r = row; r < row + block; ++r) {
        const KeyRange seen = VisibleKeys(group, begin + r % queries);
        if (seen.begin == seen.end) continue;
        least = Least(least, seen.begin);
        most = Most(most, seen.end);
      }
      const int64_t used = Least(count, most - first);
      if (used <= 0 || least >= first + count) continue;
      const int64_t vectors = RoundUpToLanes(used) / kLanes;
      Multiply<Left::kPlain, Result::kWrite>(
          block, vectors, width, {scratch.queries + row * padded, padded},
          {scratch.keys, kKeyBlock}, {scratch.scores, kKeyBlock});
      for (int64_t r = 0; r < block; ++r) {
        const int64_t i = (row + r) % queries;
        const int64_t head = (row + r) / queries;
        const KeyRange seen = VisibleKeys(group, begin + i);
        const KeyRange visible = {
            Most(0, Least(seen.begin - first, vectors * kLanes)),
            Most(0, Least(seen.end - first, vectors * kLanes))};
        float* scores = scratch.scores + r * kKeyBlock;
        SoftmaxRow(scores, vectors * kLanes, visible, scratch.most + row + r,
                   scratch.sums + row + r, scratch.out + (row + r) * padded,
                   padded);
        if (group.dropout.active) {
          float buffer[kKeyBlock + kFactorSlack];
          RowDropout dropout = group.dropout;
          dropout.key += static_cast<uint64_t>(head);
          const float* factors =
              Factors(dropout, begin + i, group.key_position + first,
                      vectors * kLanes, buffer);
          for (int64_t c = 0; c < vectors * kLanes; c += kLanes) {
            Store(scores + c,
                  Load(scores + c, Whole{}) * Load(factors + c, Whole{}),
                  Whole{});
          }
        }
      }
      Multiply<Left::kPlain, Result::kAdd>(
          block, padded / kLanes, used, {scratch.scores, kKeyBlock},
          {scratch.values, padded}, {scratch.out + row * padded, padded});
    }
  }

  for (int64_t row = 0; row < rows; ++row) {
    const int64_t i = begin + row % queries;
    const int64_t head = row / queries;
    const float sum = scratch.sums[row];
    const bool blind = scratch.most[row] == -__builtin_inff();
    group.lse[head * group.lse_stride + i] =
        blind ? -__builtin_inff()
              : static_cast<float>(scratch.most[row] + Log(sum));
    // A NaN sum makes the row NaN.
    const float inverse = blind ? 0.0f : 1.0f / sum;
    const float* from = scratch.out + row * padded;
    T* to = static_cast<T*>(group.out) + i * group.out_stride + head * width;
    PrefetchRow(to + kPrefetchRows * group.out_stride, width);
    ForEach(width, [&](int64_t d, auto part) {
      Store(to + d, Load(from + d, part) * inverse, part);
    });
  }
}

}  // namespace lockstep::cpu::LOCKSTEP_LEVEL

#endif  // LOCKSTEP_KERNELS_CPU_LEVEL_ATTENTION_FORWARD_H_
