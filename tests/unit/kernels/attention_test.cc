#include "kernels/ops/attention.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/testing/tolerances.h"
#include "tests/unit/kernels/attention_reference.h"
#include "tests/unit/kernels/kernel_test.h"
#include "tests/unit/kernels/philox_reference.h"

namespace lockstep {
namespace {

using ::lockstep::testing::Tolerance;

struct Layout {
  std::string name;
  ReferenceShape shape;
  double dropout = 0.0;
};

// Segments cross the kernel's blocks of 48 queries and 128 keys; widths are not
// all whole vectors.
std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  const auto add = [&](const char* name, ReferenceShape shape,
                       double dropout = 0.0) {
    if (shape.key_bounds.empty()) shape.key_bounds = shape.query_bounds;
    shape.scale = 1.0 / std::sqrt(static_cast<double>(shape.head_width));
    layouts.push_back({name, shape, dropout});
  };
  add("one row", {.query_bounds = {0, 1}});
  add("causal",
      {.heads = 2, .kv_heads = 2, .head_width = 16, .query_bounds = {0, 301}});
  add("packed", {.heads = 3,
                 .kv_heads = 3,
                 .head_width = 20,
                 .query_bounds = {0, 5, 5, 54, 190, 191}});
  add("odd width",
      {.heads = 1, .kv_heads = 1, .head_width = 7, .query_bounds = {0, 70}});
  add("wide",
      {.heads = 1, .kv_heads = 1, .head_width = 130, .query_bounds = {0, 140}});
  add("bidirectional", {.heads = 2,
                        .kv_heads = 2,
                        .head_width = 8,
                        .causal = false,
                        .query_bounds = {0, 33, 180}});
  add("grouped queries", {.heads = 6,
                          .kv_heads = 2,
                          .head_width = 12,
                          .query_bounds = {0, 131, 150}});
  add("window", {.heads = 2,
                 .kv_heads = 1,
                 .head_width = 8,
                 .window = 37,
                 .query_bounds = {0, 290}});
  add("window of one",
      {.heads = 1, .kv_heads = 1, .window = 1, .query_bounds = {0, 60}});
  // The second half of a sequence against the first: ring attention's steps.
  add("query offset", {.heads = 2,
                       .kv_heads = 2,
                       .query_offset = 150,
                       .query_bounds = {0, 90},
                       .key_bounds = {0, 150}});
  // Queries before the first key see nothing.
  add("blind rows", {.heads = 2,
                     .kv_heads = 2,
                     .key_offset = 50,
                     .query_bounds = {0, 120},
                     .key_bounds = {0, 100}});
  add("unequal segments", {.heads = 1,
                           .kv_heads = 1,
                           .causal = false,
                           .query_bounds = {0, 10, 10, 14},
                           .key_bounds = {3, 150, 153, 160}});
  add("dropout",
      {.heads = 4,
       .kv_heads = 2,
       .head_width = 8,
       .query_bounds = {0, 150, 163}},
      0.3);
  return layouts;
}

struct Inputs {
  Matrix q, k, v, dout;
};

Inputs MakeInputs(const ReferenceShape& shape, DType dtype) {
  const int64_t queries = shape.query_bounds.back() + 2;  // rows of no segment
  const int64_t keys = shape.key_bounds.back() + 2;
  const int64_t width = shape.heads * shape.head_width;
  const int64_t kv_width = shape.kv_heads * shape.head_width;
  return {RandomMatrix(queries, width, dtype, 1, 2.0),
          RandomMatrix(keys, kv_width, dtype, 2, 2.0),
          RandomMatrix(keys, kv_width, dtype, 3),
          RandomMatrix(queries, width, dtype, 4)};
}

constexpr uint64_t kKey = 0x123456789abcdef0;
constexpr uint32_t kStep = 17;
// Positions within the sample: the segments of a sample follow each other.
constexpr int32_t kFirstPosition = 3;

void SetReferenceDropout(Layout& layout) {
  if (layout.dropout == 0.0) return;
  const std::vector<int32_t> bounds = layout.shape.query_bounds;
  const double probability = layout.dropout;
  layout.shape.factor = [=](int64_t head, int64_t query, int64_t key) {
    int64_t segment = 0;
    while (bounds[segment + 1] <= query) ++segment;
    const uint32_t position = kFirstPosition + query;
    const uint32_t key_position = kFirstPosition + bounds[segment] + key;
    return KeptReference(static_cast<float>(probability), kKey + head, kStep,
                         1000 + segment, position, key_position)
               ? 1.0 / (1.0 - probability)
               : 0.0;
  };
}

// An AttentionShape and the device memory it points to.
struct DeviceShape {
  AttentionShape shape;
  OwnedTensor query_bounds, key_bounds, query_offsets, key_offsets;
  OwnedTensor sample, position;
  StepScalars scalars;
};

void Fill(Stream& stream, const Layout& layout, int64_t queries,
          DeviceShape& device) {
  const ReferenceShape& reference = layout.shape;
  device.query_bounds = UploadInts(stream, reference.query_bounds);
  device.key_bounds = UploadInts(stream, reference.key_bounds);
  AttentionShape& shape = device.shape;
  shape.heads = reference.heads;
  shape.kv_heads = reference.kv_heads;
  shape.head_width = reference.head_width;
  shape.softmax_scale = static_cast<float>(reference.scale);
  shape.mask =
      reference.causal ? AttentionMask::kCausal : AttentionMask::kBidirectional;
  shape.window = reference.window;
  const size_t segments = reference.query_bounds.size() - 1;
  const auto offsets = [&](int64_t offset) {
    return UploadInts(
        stream, std::vector<int32_t>(segments, static_cast<int32_t>(offset)));
  };
  device.query_offsets = offsets(reference.query_offset);
  device.key_offsets = offsets(reference.key_offset);
  shape.query_offsets = device.query_offsets;
  shape.key_offsets = device.key_offsets;
  shape.query_bounds = device.query_bounds;
  shape.key_bounds = device.key_bounds;
  for (size_t s = 0; s + 1 < reference.query_bounds.size(); ++s) {
    shape.max_query_rows =
        std::max<int64_t>(shape.max_query_rows, reference.query_bounds[s + 1] -
                                                    reference.query_bounds[s]);
    shape.max_key_rows =
        std::max<int64_t>(shape.max_key_rows, reference.key_bounds[s + 1] -
                                                  reference.key_bounds[s]);
  }
  if (layout.dropout == 0.0) return;
  std::vector<int32_t> sample(queries), position(queries);
  for (int64_t row = 0; row < queries; ++row) {
    int32_t segment = 0;
    while (segment + 2 < static_cast<int32_t>(reference.query_bounds.size()) &&
           reference.query_bounds[segment + 1] <= row) {
      ++segment;
    }
    sample[row] = 1000 + segment;
    position[row] = static_cast<int32_t>(kFirstPosition + row);
  }
  device.sample = UploadInts(stream, sample, DType::kUInt32);
  device.position = UploadInts(stream, position);
  device.scalars.step = kStep;
  shape.dropout = {.probability = static_cast<float>(layout.dropout),
                   .key = kKey,
                   .scalars = &device.scalars,
                   .rows = {device.sample, device.position}};
}

class AttentionTest : public KernelTest {};
INSTANTIATE_KERNEL_TEST(AttentionTest);

// Rows of no segment are left alone: the reference has 0 there.
Matrix WithoutLastRows(const Matrix& x, int64_t rows) {
  Matrix y(rows, x.cols);
  std::copy_n(x.values.begin(), y.values.size(), y.values.begin());
  return y;
}
Matrix WithoutLastColumns(const Matrix& x, int64_t cols) {
  Matrix y(x.rows, cols);
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) y(row, col) = x(row, col);
  }
  return y;
}

TEST_P(AttentionTest, ForwardMatchesReference) {
  for (Layout& layout : Layouts()) {
    SCOPED_TRACE(layout.name);
    SetReferenceDropout(layout);
    const Inputs in = MakeInputs(layout.shape, dtype());
    const auto got = Run([&](Stream& stream) {
      DeviceShape device;
      Fill(stream, layout, in.q.rows, device);
      OwnedTensor q = Upload(stream, in.q, dtype());
      OwnedTensor k = Upload(stream, in.k, dtype());
      OwnedTensor v = Upload(stream, in.v, dtype());
      OwnedTensor out = Empty(stream, in.q.rows, in.q.cols, dtype());
      OwnedTensor lse =
          Empty(stream, layout.shape.heads, in.q.rows, DType::kFloat32);
      EXPECT_OK(ops::AttentionForward(stream, device.shape, q, k, v, out, lse));
      return std::vector<Matrix>{Download(out), Download(lse)};
    });
    const ReferenceForward want =
        AttentionReference(layout.shape, in.q, in.k, in.v);
    const int64_t rows = layout.shape.query_bounds.back();
    EXPECT_TRUE(Near(WithoutLastRows(got[0], rows),
                     WithoutLastRows(want.out, rows),
                     Tolerance(dtype(), layout.shape.key_bounds.back())));
    EXPECT_TRUE(NearEach(WithoutLastColumns(got[1], rows),
                         WithoutLastColumns(want.lse, rows),
                         Tolerance(DType::kFloat32, 200), 1.0));
  }
}

TEST_P(AttentionTest, BackwardMatchesReference) {
  for (Layout& layout : Layouts()) {
    SCOPED_TRACE(layout.name);
    SetReferenceDropout(layout);
    const Inputs in = MakeInputs(layout.shape, dtype());
    const ReferenceForward forward =
        AttentionReference(layout.shape, in.q, in.k, in.v);
    const auto got = Run([&](Stream& stream) {
      DeviceShape device;
      Fill(stream, layout, in.q.rows, device);
      OwnedTensor q = Upload(stream, in.q, dtype());
      OwnedTensor k = Upload(stream, in.k, dtype());
      OwnedTensor v = Upload(stream, in.v, dtype());
      OwnedTensor dout = Upload(stream, in.dout, dtype());
      OwnedTensor out = Upload(stream, forward.out, dtype());
      OwnedTensor lse = Upload(stream, forward.lse, DType::kFloat32);
      OwnedTensor dq = Empty(stream, in.q.rows, in.q.cols, dtype());
      OwnedTensor dk = Empty(stream, in.k.rows, in.k.cols, dtype());
      OwnedTensor dv = Empty(stream, in.k.rows, in.k.cols, dtype());
      EXPECT_OK(ops::AttentionBackward(stream, device.shape, dout, q, k, v, out,
                                       lse, dq, dk, dv));
      return std::vector<Matrix>{Download(dq), Download(dk), Download(dv)};
    });
    const ReferenceGradients want =
        AttentionReferenceBackward(layout.shape, in.dout, in.q, in.k, in.v);
    const int64_t rows = layout.shape.query_bounds.back();
    const int64_t first = layout.shape.key_bounds.front();
    const int64_t keys = layout.shape.key_bounds.back();
    // The gradient of the scores is a difference of products of dout and v,
    // which cancels altogether where a query sees one key.
    const double tolerance = 2.0 * Tolerance(dtype(), 2 * rows, 2);
    EXPECT_TRUE(Near(WithoutLastRows(got[0], rows),
                     WithoutLastRows(want.dq, rows), tolerance, 1.0))
        << "dq";
    const auto of_segments = [&](const Matrix& x) {
      Matrix y = WithoutLastRows(x, keys);
      for (int64_t row = 0; row < first; ++row) {
        for (int64_t col = 0; col < y.cols; ++col) y(row, col) = 0.0;
      }
      return y;
    };
    EXPECT_TRUE(Near(of_segments(got[1]), of_segments(want.dk), tolerance, 1.0))
        << "dk";
    EXPECT_TRUE(Near(of_segments(got[2]), of_segments(want.dv),
                     Tolerance(dtype(), rows)))
        << "dv";
  }
}

TEST_P(AttentionTest, TakesColumnRangesOfOneMatrix) {
  const int64_t rows = 75, heads = 2, width = 8, model = heads * width;
  Layout layout = {.name = "",
                   .shape = {.heads = heads,
                             .kv_heads = heads,
                             .head_width = width,
                             .scale = 0.3,
                             .query_bounds = {0, 75},
                             .key_bounds = {0, 75}}};
  const Matrix qkv = RandomMatrix(rows, 3 * model, dtype(), 5);
  const Matrix grad = RandomMatrix(rows, model, dtype(), 6);
  const auto columns = [&](int64_t part) {
    Matrix x(rows, model);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < model; ++col) {
        x(row, col) = qkv(row, part * model + col);
      }
    }
    return x;
  };
  const auto got = Run([&](Stream& stream) {
    DeviceShape device;
    Fill(stream, layout, rows, device);
    OwnedTensor all = Upload(stream, qkv, dtype());
    OwnedTensor dall = Empty(stream, rows, 3 * model, dtype());
    OwnedTensor dout = Upload(stream, grad, dtype());
    OwnedTensor out = Empty(stream, rows, model, dtype());
    OwnedTensor lse = Empty(stream, heads, rows, DType::kFloat32);
    const Tensor q = all->Columns(0, model), k = all->Columns(model, model),
                 v = all->Columns(2 * model, model);
    EXPECT_OK(ops::AttentionForward(stream, device.shape, q, k, v, out, lse));
    EXPECT_OK(ops::AttentionBackward(
        stream, device.shape, dout, q, k, v, out, lse, dall->Columns(0, model),
        dall->Columns(model, model), dall->Columns(2 * model, model)));
    return std::vector<Matrix>{Download(dall)};
  });
  const ReferenceGradients want = AttentionReferenceBackward(
      layout.shape, grad, columns(0), columns(1), columns(2));
  Matrix all(rows, 3 * model);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < model; ++col) {
      all(row, col) = want.dq(row, col);
      all(row, model + col) = want.dk(row, col);
      all(row, 2 * model + col) = want.dv(row, col);
    }
  }
  EXPECT_TRUE(Near(got[0], all, 2.0 * Tolerance(dtype(), rows, 2)));
}

TEST_P(AttentionTest, HugeScoresStayFinite) {
  Layout layout = {.name = "",
                   .shape = {.head_width = 8,
                             .scale = 1.0,
                             .query_bounds = {0, 140},
                             .key_bounds = {0, 140}}};
  const Matrix q = RandomMatrix(140, 8, dtype(), 7, 300.0);
  const Matrix v = RandomMatrix(140, 8, dtype(), 8);
  const auto got = Run([&](Stream& stream) {
    DeviceShape device;
    Fill(stream, layout, 140, device);
    OwnedTensor x = Upload(stream, q, dtype());
    OwnedTensor values = Upload(stream, v, dtype());
    OwnedTensor out = Empty(stream, 140, 8, dtype());
    OwnedTensor lse = Empty(stream, 1, 140, DType::kFloat32);
    EXPECT_OK(
        ops::AttentionForward(stream, device.shape, x, x, values, out, lse));
    return std::vector<Matrix>{Download(out)};
  });
  for (double value : got[0].values) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_LE(std::abs(value), 1.01);
  }
}

TEST(AttentionReferenceTest, GradientsMatchFiniteDifferences) {
  Layout layout = {.name = "",
                   .shape = {.heads = 4,
                             .kv_heads = 2,
                             .head_width = 3,
                             .scale = 0.7,
                             .window = 5,
                             .query_bounds = {0, 4, 13},
                             .key_bounds = {0, 4, 13}},
                   .dropout = 0.25};
  SetReferenceDropout(layout);
  const Inputs in = MakeInputs(layout.shape, DType::kFloat32);
  const ReferenceGradients got =
      AttentionReferenceBackward(layout.shape, in.dout, in.q, in.k, in.v);
  EXPECT_TRUE(
      Near(got.dq,
           DifferenceGradient(
               [&](const Matrix& q) {
                 return AttentionReference(layout.shape, q, in.k, in.v).out;
               },
               in.q, in.dout),
           testing::kDifferenceTolerance));
  EXPECT_TRUE(
      Near(got.dk,
           DifferenceGradient(
               [&](const Matrix& k) {
                 return AttentionReference(layout.shape, in.q, k, in.v).out;
               },
               in.k, in.dout),
           testing::kDifferenceTolerance));
  EXPECT_TRUE(
      Near(got.dv,
           DifferenceGradient(
               [&](const Matrix& v) {
                 return AttentionReference(layout.shape, in.q, in.k, v).out;
               },
               in.v, in.dout),
           testing::kDifferenceTolerance));
}

TEST(AttentionCheckTest, NamesWhatIsWrong) {
  std::unique_ptr<Device> device = MakeDevice(CpuLevel::kV2, 1);
  Stream& stream = device->stream();
  Layout layout = {.name = "",
                   .shape = {.heads = 2,
                             .kv_heads = 2,
                             .query_bounds = {0, 9},
                             .key_bounds = {0, 9}}};
  DeviceShape shape;
  Fill(stream, layout, 9, shape);
  OwnedTensor x = Upload(stream, Matrix(9, 16), DType::kFloat32);
  OwnedTensor narrow = Upload(stream, Matrix(9, 8), DType::kFloat32);
  OwnedTensor lse = Empty(stream, 2, 9, DType::kFloat32);
  const auto run = [&](const Tensor& k, const AttentionShape& s) {
    return ops::AttentionForward(stream, s, x, k, x, x, lse);
  };
  EXPECT_THAT(
      run(narrow, shape.shape),
      testing::StatusIs(absl::StatusCode::kInvalidArgument,
                        ::testing::HasSubstr("k is (9, 8), want (9, 16)")));
  AttentionShape uneven = shape.shape;
  uneven.heads = 3;
  EXPECT_THAT(run(x, uneven),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("can't share")));
  AttentionShape short_rows = shape.shape;
  short_rows.max_query_rows = 5;
  EXPECT_THAT(run(x, short_rows),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("segment 0 has 9")));
  OwnedTensor bounds = UploadInts(stream, {0, 10});
  AttentionShape beyond = shape.shape;
  beyond.query_bounds = bounds;
  beyond.max_query_rows = 10;
  EXPECT_THAT(run(x, beyond),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("at most 9")));
}

}  // namespace
}  // namespace lockstep
