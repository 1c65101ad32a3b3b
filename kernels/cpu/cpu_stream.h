// CpuStream: what CPU ops need beside their tensors: the compute pool and the
// kernels of the device's instruction level. Work is done when an op returns.
#ifndef LOCKSTEP_KERNELS_CPU_CPU_STREAM_H_
#define LOCKSTEP_KERNELS_CPU_CPU_STREAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cpu/bf16_matmul.h"
#include "kernels/cpu/cpu_level.h"
#include "kernels/cpu/level/kernels.h"
#include "kernels/cpu/parallel_for.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace lockstep::cpu {

class CpuStream final : public Stream {
 public:
  CpuStream(const Backend& backend, Allocator& allocator,
            const LevelKernels& kernels, Bf16Product bf16_product, int threads)
      : Stream(backend, allocator, DeviceKind::kCpu),
        kernels_(kernels),
        bf16_product_(bf16_product),
        pool_(threads) {}

  absl::Status Synchronize() override { return absl::OkStatus(); }
  const LevelKernels& kernels() const { return kernels_; }
  Bf16Product bf16_product() const { return bf16_product_; }
  Bf16Matmul& bf16_matmul() { return bf16_matmul_; }
  ComputePool& pool() { return pool_; }

 private:
  const LevelKernels& kernels_;
  const Bf16Product bf16_product_;
  Bf16Matmul bf16_matmul_;
  ComputePool pool_;
};

// The table of the CPU backend holds only functions that get its own streams.
inline CpuStream& AsCpu(Stream& stream) {
  return static_cast<CpuStream&>(stream);
}

// Index of a float dtype in the kernels' tables.
inline int TypeIndex(DType dtype) { return dtype == DType::kBFloat16 ? 1 : 0; }

inline char* RowPointer(const Tensor& tensor, int64_t row) {
  return static_cast<char*>(tensor.raw()) +
         row * tensor.row_stride() * SizeOf(tensor.dtype());
}

// Elements below which waking another thread costs more than it saves.
inline constexpr int64_t kGrainElements = 16384;

// Rows of a (rows, cols) tensor that are worth one thread's while.
inline int64_t GrainRows(int64_t cols) {
  return cols >= kGrainElements ? 1 : kGrainElements / (cols > 0 ? cols : 1);
}

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_CPU_STREAM_H_
