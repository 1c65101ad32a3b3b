// What follows from an instruction level: its kernels, oneDNN's limit, and how
// bf16 matrices are multiplied.
#ifndef LOCKSTEP_KERNELS_CPU_CPU_LEVEL_H_
#define LOCKSTEP_KERNELS_CPU_CPU_LEVEL_H_

#include "kernels/cpu/level/kernels.h"
#include "kernels/device.h"

namespace lockstep::cpu {

// bf16 products: by the processor's bf16 instructions, or widened to fp32.
enum class Bf16Product { kNative, kWidened };

const LevelKernels& KernelsOf(CpuLevel level);

// Native where it is faster than fp32: with AMX, or AVX-512 BF16 of a processor
// other than Intel's, whose bf16 dot product without AMX runs at half the rate
// of its fp32 products. A fixed rule and not a measurement, so that a host's
// results can be repeated.
Bf16Product DetectBf16Product(CpuLevel level);

// Holds oneDNN to `level`. Works once in a process, before oneDNN is used
// otherwise; later calls change nothing.
void LimitOneDnn(CpuLevel level, Bf16Product product);

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_CPU_LEVEL_H_
