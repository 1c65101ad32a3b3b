#include "kernels/cpu/cpu_level.h"

#include <cpuid.h>
#include <immintrin.h>

#include <cstdint>

#include "oneapi/dnnl/dnnl.h"

namespace lockstep {
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers CpuId(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) {
    return {};
  }
  return r;
}

bool Has(unsigned word, int bit) { return (word >> bit & 1) != 0; }

// Whether the operating system saves the registers of `mask` (XCR0).
bool SystemSaves(uint64_t mask) {
  if (!Has(CpuId(1, 0).ecx, 27)) return false;  // OSXSAVE
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return ((static_cast<uint64_t>(high) << 32 | low) & mask) == mask;
}

constexpr uint64_t kAvxState = 0x6;
constexpr uint64_t kAvx512State = 0xe6;
constexpr uint64_t kAmxState = 0x60000;

}  // namespace

CpuLevel DetectCpuLevel() {
  const Registers one = CpuId(1, 0);
  const Registers seven = CpuId(7, 0);
  const Registers extended = CpuId(0x80000001, 0);
  const bool v3 = Has(one.ecx, 12) /* FMA */ && Has(one.ecx, 22) /* MOVBE */ &&
                  Has(one.ecx, 28) /* AVX */ && Has(one.ecx, 29) /* F16C */ &&
                  Has(seven.ebx, 3) /* BMI1 */ &&
                  Has(seven.ebx, 5) /* AVX2 */ &&
                  Has(seven.ebx, 8) /* BMI2 */ &&
                  Has(extended.ecx, 5) /* LZCNT */ && SystemSaves(kAvxState);
  if (!v3) return CpuLevel::kV2;
  const bool v4 = Has(seven.ebx, 16) /* F */ && Has(seven.ebx, 17) /* DQ */ &&
                  Has(seven.ebx, 28) /* CD */ && Has(seven.ebx, 30) /* BW */ &&
                  Has(seven.ebx, 31) /* VL */ && SystemSaves(kAvx512State);
  return v4 ? CpuLevel::kV4 : CpuLevel::kV3;
}

namespace cpu {

const LevelKernels& KernelsOf(CpuLevel level) {
#define LOCKSTEP_LEVEL_KERNELS(level)                                         \
  {                                                                           \
    .elementwise = &level::kElementwiseKernels,                               \
    .dropout = &level::kDropoutKernels, .norm = &level::kNormKernels,         \
    .reduce = &level::kReduceKernels, .embedding = &level::kEmbeddingKernels, \
    .cross_entropy = &level::kCrossEntropyKernels,                            \
    .optimizer = &level::kOptimizerKernels,                                   \
    .attention = &level::kAttentionKernels,                                   \
  }
  static constexpr LevelKernels kV2 = LOCKSTEP_LEVEL_KERNELS(v2);
  static constexpr LevelKernels kV3 = LOCKSTEP_LEVEL_KERNELS(v3);
  static constexpr LevelKernels kV4 = LOCKSTEP_LEVEL_KERNELS(v4);
#undef LOCKSTEP_LEVEL_KERNELS
  switch (level) {
    case CpuLevel::kV2:
      return kV2;
    case CpuLevel::kV3:
      return kV3;
    case CpuLevel::kV4:
      return kV4;
  }
  return kV2;
}

Bf16Product DetectBf16Product(CpuLevel level) {
  if (level != CpuLevel::kV4) return Bf16Product::kWidened;
  const Registers vendor = CpuId(0, 0);
  const bool intel = vendor.ebx == signature_INTEL_ebx &&
                     vendor.ecx == signature_INTEL_ecx &&
                     vendor.edx == signature_INTEL_edx;
  const Registers seven = CpuId(7, 0);
  const bool amx =
      Has(seven.edx, 22) && Has(seven.edx, 24) && SystemSaves(kAmxState);
  const bool avx512_bf16 = Has(CpuId(7, 1).eax, 5);
  return amx || (avx512_bf16 && !intel) ? Bf16Product::kNative
                                        : Bf16Product::kWidened;
}

void LimitOneDnn(CpuLevel level, Bf16Product product) {
  dnnl_cpu_isa_t limit = dnnl_cpu_isa_all;
  switch (level) {
    case CpuLevel::kV2:
      limit = dnnl_cpu_isa_sse41;
      break;
    case CpuLevel::kV3:
      limit = dnnl_cpu_isa_avx2;
      break;
    case CpuLevel::kV4:
      if (product == Bf16Product::kWidened) limit = dnnl_cpu_isa_avx512_core;
      break;
  }
  dnnl_set_max_cpu_isa(limit);
}

}  // namespace cpu
}  // namespace lockstep
