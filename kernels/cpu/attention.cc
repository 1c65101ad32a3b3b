#include "kernels/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/row_dropout.h"

namespace lockstep::cpu {
namespace {

// Rows (of all heads of a group) that one thread takes at a time: packing a
// block of keys is then 3 % of the work on it, and their outputs stay in the
// second-level cache.
constexpr int64_t kChunkRows = 384;

const char* At(const Tensor& x, int64_t row, int64_t column) {
  return RowPointer(x, row) + column * SizeOf(x.dtype());
}
char* MutableAt(const Tensor& x, int64_t row, int64_t column) {
  return RowPointer(x, row) + column * SizeOf(x.dtype());
}

int64_t OffsetAt(const Tensor& offsets, int64_t segment) {
  return offsets.empty() ? 0 : offsets.data<int32_t>()[segment];
}

struct Arguments {
  const AttentionShape& shape;
  const Tensor& q;
  const Tensor& k;
  const Tensor& v;
  const Tensor& out;
  const Tensor& lse;
  RowDropout dropout;

  int64_t group_heads() const { return shape.heads / shape.kv_heads; }
  int64_t queries(int64_t segment) const {
    const int32_t* bounds = shape.query_bounds.data<int32_t>();
    return bounds[segment + 1] - bounds[segment];
  }
  AttentionGroup Group(int64_t segment, int64_t kv_head) const;
};

AttentionGroup Arguments::Group(int64_t segment, int64_t kv_head) const {
  const int32_t* key_bounds = shape.key_bounds.data<int32_t>();
  const int64_t query = shape.query_bounds.data<int32_t>()[segment];
  const int64_t key = key_bounds[segment];
  const int64_t head = kv_head * group_heads();
  AttentionGroup group;
  group.heads = group_heads();
  group.width = shape.head_width;
  group.queries = queries(segment);
  group.keys = key_bounds[segment + 1] - key;
  group.scale = shape.softmax_scale;
  group.causal = shape.mask == AttentionMask::kCausal;
  group.window = shape.window;
  group.shift = OffsetAt(shape.query_offsets, segment) -
                OffsetAt(shape.key_offsets, segment);
  group.q = At(q, query, head * group.width);
  group.k = At(k, key, kv_head * group.width);
  group.v = At(v, key, kv_head * group.width);
  group.q_stride = q.row_stride();
  group.k_stride = k.row_stride();
  group.v_stride = v.row_stride();
  group.out = MutableAt(out, query, head * group.width);
  group.out_stride = out.row_stride();
  group.lse = lse.data<float>() + head * lse.row_stride() + query;
  group.lse_stride = lse.row_stride();
  group.dropout = dropout;
  if (dropout.active && group.queries > 0) {
    group.dropout.key += static_cast<uint64_t>(shape.first_head + head);
    group.dropout.sample += query;
    group.dropout.position += query;
    // A segment lies in one sample, its positions rise by one: a key's position
    // follows from the first query's.
    group.key_position = group.dropout.position[0] - group.shift;
  }
  return group;
}

// Bounds rise from 0 or more to at most `rows`, and `longest` holds.
absl::Status CheckBounds(const char* name, const Tensor& bounds, int64_t rows,
                         int64_t longest) {
  const int32_t* bound = bounds.data<int32_t>();
  const int64_t segments = bounds.elements() - 1;
  for (int64_t s = 0; s < segments; ++s) {
    if (bound[s] < 0 || bound[s] > bound[s + 1] || bound[s + 1] > rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "attention: ", name, "_bounds of segment ", s, " are ", bound[s],
          " and ", bound[s + 1], ", want them rising and at most ", rows));
    }
    if (bound[s + 1] - bound[s] > longest) {
      return absl::InvalidArgumentError(absl::StrCat(
          "attention: segment ", s, " has ", bound[s + 1] - bound[s], " ", name,
          " rows, the longest is said to have ", longest));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAllBounds(const Arguments& arguments) {
  const AttentionShape& shape = arguments.shape;
  RETURN_IF_ERROR(CheckBounds("query", shape.query_bounds, arguments.q.rows(),
                              shape.max_query_rows));
  return CheckBounds("key", shape.key_bounds, arguments.k.rows(),
                     shape.max_key_rows);
}

// One piece of scratch a thread, whole cache lines apart.
struct ThreadScratch {
  Buffer memory;
  int64_t floats;
  float* of(int thread) const {
    return static_cast<float*>(memory.data()) + thread * floats;
  }
};

absl::StatusOr<ThreadScratch> AllocateScratch(CpuStream& cpu, int64_t floats) {
  ThreadScratch scratch;
  scratch.floats = (floats + 31) / 32 * 32;
  ASSIGN_OR_RETURN(scratch.memory,
                   cpu.allocator().Allocate(
                       cpu.pool().threads() * scratch.floats * sizeof(float),
                       MemoryCategory::kBuffer));
  return scratch;
}

}  // namespace

absl::Status AttentionForward(Stream& stream, const AttentionShape& shape,
                              const Tensor& q, const Tensor& k, const Tensor& v,
                              const Tensor& out, const Tensor& lse) {
  CpuStream& cpu = AsCpu(stream);
  const AttentionKernels& kernels = *cpu.kernels().attention;
  const auto kernel = kernels.forward[TypeIndex(q.dtype())];
  const Arguments arguments = {
      shape, q, k, v, out, lse, ToRowDropout(shape.dropout)};
  RETURN_IF_ERROR(CheckAllBounds(arguments));
  const int64_t group_heads = arguments.group_heads();
  const int64_t chunk = std::max<int64_t>(kChunkRows / group_heads, 16);
  struct Item {
    int64_t segment, kv_head, begin, end;
  };
  std::vector<Item> items;
  const int64_t segments = shape.query_bounds.elements() - 1;
  for (int64_t segment = 0; segment < segments; ++segment) {
    const int64_t queries = arguments.queries(segment);
    for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      for (int64_t begin = 0; begin < queries; begin += chunk) {
        items.push_back(
            {segment, kv_head, begin, std::min(begin + chunk, queries)});
      }
    }
  }
  // Long pieces first: threads then end at about the same time.
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.end > b.end; });
  const int64_t rows = group_heads * std::min(chunk, shape.max_query_rows);
  ASSIGN_OR_RETURN(
      const ThreadScratch scratch,
      AllocateScratch(cpu, kernels.forward_scratch(rows, shape.head_width)));
  cpu.pool().Items(items.size(), [&](int64_t index, int thread) {
    const Item& item = items[index];
    kernel(arguments.Group(item.segment, item.kv_head), item.begin, item.end,
           scratch.of(thread));
  });
  return absl::OkStatus();
}

absl::Status AttentionBackward(Stream& stream, const AttentionShape& shape,
                               const Tensor& dout, const Tensor& q,
                               const Tensor& k, const Tensor& v,
                               const Tensor& out, const Tensor& lse,
                               const Tensor& dq, const Tensor& dk,
                               const Tensor& dv) {
  CpuStream& cpu = AsCpu(stream);
  const AttentionKernels& kernels = *cpu.kernels().attention;
  const auto kernel = kernels.backward[TypeIndex(q.dtype())];
  const Arguments arguments = {
      shape, q, k, v, out, lse, ToRowDropout(shape.dropout)};
  RETURN_IF_ERROR(CheckAllBounds(arguments));
  const int64_t group_heads = arguments.group_heads();
  ASSIGN_OR_RETURN(const ThreadScratch scratch,
                   AllocateScratch(cpu, kernels.backward_scratch(
                                            group_heads * shape.max_query_rows,
                                            shape.head_width)));
  const int64_t segments = shape.query_bounds.elements() - 1;
  std::vector<int64_t> order(segments);
  for (int64_t s = 0; s < segments; ++s) order[s] = s;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return arguments.queries(a) > arguments.queries(b);
  });
  const int32_t* query_bounds = shape.query_bounds.data<int32_t>();
  const int32_t* key_bounds = shape.key_bounds.data<int32_t>();
  const int64_t width = shape.head_width;
  cpu.pool().Items(segments * shape.kv_heads, [&](int64_t item, int thread) {
    const int64_t segment = order[item / shape.kv_heads];
    const int64_t kv_head = item % shape.kv_heads;
    const int64_t query = query_bounds[segment];
    const int64_t key = key_bounds[segment];
    const int64_t column = kv_head * group_heads * width;
    AttentionGroup group = arguments.Group(segment, kv_head);
    group.dout = At(dout, query, column);
    group.dout_stride = dout.row_stride();
    group.dq = MutableAt(dq, query, column);
    group.dq_stride = dq.row_stride();
    group.dk = MutableAt(dk, key, kv_head * width);
    group.dk_stride = dk.row_stride();
    group.dv = MutableAt(dv, key, kv_head * width);
    group.dv_stride = dv.row_stride();
    kernel(group, scratch.of(thread));
  });
  return absl::OkStatus();
}

absl::Status AttentionMerge(Stream& stream, int64_t heads,
                            const Tensor& part_out, const Tensor& part_lse,
                            const Tensor& out, const Tensor& lse) {
  CpuStream& cpu = AsCpu(stream);
  const auto blend = cpu.kernels().elementwise->blend[TypeIndex(out.dtype())];
  const int64_t width = out.cols() / heads;
  cpu.pool().Ranges(
      out.rows(), GrainRows(out.cols()), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          for (int64_t head = 0; head < heads; ++head) {
            float& here = lse.data<float>()[head * lse.row_stride() + row];
            const float there =
                part_lse.data<float>()[head * part_lse.row_stride() + row];
            // Neither sees a key, or the part doesn't: nothing changes.
            if (there == -std::numeric_limits<float>::infinity()) continue;
            const float most = std::max(here, there);
            const float both =
                most + std::log(std::exp(here - most) + std::exp(there - most));
            char* to = MutableAt(out, row, head * width);
            blend(std::exp(here - both), to, std::exp(there - both),
                  At(part_out, row, head * width), to, width);
            here = both;
          }
        }
      });
  return absl::OkStatus();
}

}  // namespace lockstep::cpu
