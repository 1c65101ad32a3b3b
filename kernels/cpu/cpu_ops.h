// The CPU's side of each op, and the table of them. Signatures and contracts
// are those of kernels/ops/; arguments have been checked there, and the stream
// is a CpuStream.
#ifndef LOCKSTEP_KERNELS_CPU_CPU_OPS_H_
#define LOCKSTEP_KERNELS_CPU_CPU_OPS_H_

#include "kernels/backend.h"

namespace lockstep::cpu {

decltype(ops::CopyFromHost) CopyFromHost;
decltype(ops::CopyToHost) CopyToHost;

decltype(ops::Zero) Zero;
decltype(ops::Fill) Fill;
decltype(ops::Convert) Convert;
decltype(ops::Add) Add;
decltype(ops::Scale) Scale;
decltype(ops::GeluForward) GeluForward;
decltype(ops::GeluBackward) GeluBackward;
decltype(ops::SwigluForward) SwigluForward;
decltype(ops::SwigluBackward) SwigluBackward;
decltype(ops::Rotary) Rotary;
decltype(ops::Dropout) Dropout;

decltype(ops::Matmul) Matmul;
decltype(ops::ColumnSum) ColumnSum;

decltype(ops::NormForward) NormForward;
decltype(ops::ResidualNormForward) ResidualNormForward;
decltype(ops::NormBackward) NormBackward;

decltype(ops::AttentionForward) AttentionForward;
decltype(ops::AttentionBackward) AttentionBackward;
decltype(ops::AttentionMerge) AttentionMerge;

decltype(ops::EmbeddingForward) EmbeddingForward;
decltype(ops::EmbeddingBackward) EmbeddingBackward;
decltype(ops::SegmentMeanForward) SegmentMeanForward;
decltype(ops::SegmentMeanBackward) SegmentMeanBackward;

decltype(ops::CrossEntropy) CrossEntropy;
decltype(ops::CrossEntropyStatistics) CrossEntropyStatistics;
decltype(ops::CrossEntropyFromStatistics) CrossEntropyFromStatistics;
decltype(ops::SumInto) SumInto;

decltype(ops::AdamW) AdamW;
decltype(ops::Sgd) Sgd;
decltype(ops::Lars) Lars;
decltype(ops::LambMoments) LambMoments;
decltype(ops::LambApply) LambApply;
decltype(ops::SumOfSquares) SumOfSquares;

const Backend& CpuBackend();

}  // namespace lockstep::cpu

#endif  // LOCKSTEP_KERNELS_CPU_CPU_OPS_H_
