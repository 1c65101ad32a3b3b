#include "tests/unit/kernels/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

// One query row of one head: its keys' rows and softmax weights.
struct Row {
  int64_t query, head, kv_head, first_key;
  double lse;
  std::vector<double> weights;  // 0 where the key isn't seen
};

double Dot(const Matrix& a, int64_t row_a, int64_t col_a, const Matrix& b,
           int64_t row_b, int64_t col_b, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    sum += a(row_a, col_a + i) * b(row_b, col_b + i);
  }
  return sum;
}

void ForRows(const ReferenceShape& shape, const Matrix& q, const Matrix& k,
             const std::function<void(const Row&)>& body) {
  const int64_t width = shape.head_width;
  for (size_t s = 0; s + 1 < shape.query_bounds.size(); ++s) {
    const int64_t keys = shape.key_bounds[s + 1] - shape.key_bounds[s];
    for (int64_t n = shape.query_bounds[s]; n < shape.query_bounds[s + 1];
         ++n) {
      const int64_t place =
          n - shape.query_bounds[s] + shape.query_offset - shape.key_offset;
      for (int64_t head = 0; head < shape.heads; ++head) {
        Row row = {n,
                   head,
                   head / (shape.heads / shape.kv_heads),
                   shape.key_bounds[s],
                   -std::numeric_limits<double>::infinity(),
                   std::vector<double>(keys)};
        std::vector<double> scores(keys,
                                   -std::numeric_limits<double>::infinity());
        double most = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < keys; ++j) {
          if (shape.causal && j > place) continue;
          if (shape.window > 0 && j <= place - shape.window) continue;
          scores[j] =
              shape.scale * Dot(q, n, head * width, k, row.first_key + j,
                                row.kv_head * width, width);
          most = std::max(most, scores[j]);
        }
        double sum = 0.0;
        for (double score : scores) {
          if (!std::isinf(score)) sum += std::exp(score - most);
        }
        if (sum > 0.0) row.lse = most + std::log(sum);
        for (int64_t j = 0; j < keys; ++j) {
          if (!std::isinf(scores[j])) {
            row.weights[j] = std::exp(scores[j] - row.lse);
          }
        }
        body(row);
      }
    }
  }
}

double Factor(const ReferenceShape& shape, const Row& row, int64_t key) {
  return shape.factor ? shape.factor(row.head, row.query, key) : 1.0;
}

}  // namespace

ReferenceForward AttentionReference(const ReferenceShape& shape,
                                    const Matrix& q, const Matrix& k,
                                    const Matrix& v) {
  ReferenceForward result = {Matrix(q.rows, q.cols),
                             Matrix(shape.heads, q.rows)};
  const int64_t width = shape.head_width;
  ForRows(shape, q, k, [&](const Row& row) {
    result.lse(row.head, row.query) = row.lse;
    for (size_t j = 0; j < row.weights.size(); ++j) {
      const double weight = row.weights[j] * Factor(shape, row, j);
      for (int64_t d = 0; d < width; ++d) {
        result.out(row.query, row.head * width + d) +=
            weight * v(row.first_key + j, row.kv_head * width + d);
      }
    }
  });
  return result;
}

ReferenceGradients AttentionReferenceBackward(const ReferenceShape& shape,
                                              const Matrix& dout,
                                              const Matrix& q, const Matrix& k,
                                              const Matrix& v) {
  ReferenceGradients result = {Matrix(q.rows, q.cols), Matrix(k.rows, k.cols),
                               Matrix(v.rows, v.cols)};
  const int64_t width = shape.head_width;
  ForRows(shape, q, k, [&](const Row& row) {
    const int64_t column = row.head * width;
    const int64_t kv_column = row.kv_head * width;
    // dw = dL/d(weight), then the softmax: ds = w (dw - sum w dw).
    std::vector<double> dw(row.weights.size());
    double mean = 0.0;
    for (size_t j = 0; j < dw.size(); ++j) {
      dw[j] = Factor(shape, row, j) * Dot(dout, row.query, column, v,
                                          row.first_key + j, kv_column, width);
      mean += row.weights[j] * dw[j];
    }
    for (size_t j = 0; j < dw.size(); ++j) {
      const int64_t key = row.first_key + j;
      const double ds = shape.scale * row.weights[j] * (dw[j] - mean);
      const double weight = row.weights[j] * Factor(shape, row, j);
      for (int64_t d = 0; d < width; ++d) {
        result.dq(row.query, column + d) += ds * k(key, kv_column + d);
        result.dk(key, kv_column + d) += ds * q(row.query, column + d);
        result.dv(key, kv_column + d) += weight * dout(row.query, column + d);
      }
    }
  });
  return result;
}

}  // namespace lockstep
