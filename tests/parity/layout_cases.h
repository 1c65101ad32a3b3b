// The layouts of the parity tests: every axis, pairs and triples of them, both
// families, in fp32 and bf16, of up to 8 ranks.
#ifndef LOCKSTEP_TESTS_PARITY_LAYOUT_CASES_H_
#define LOCKSTEP_TESTS_PARITY_LAYOUT_CASES_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tests/parity/layout_run.h"

namespace lockstep {
namespace testing {

struct LayoutCase {
  std::string name;
  LayoutRun run;
};

inline std::ostream& operator<<(std::ostream& out, const LayoutCase& layout) {
  return out << layout.name;
}

// A small job with dropout, clipping and unequal valid tokens, of a few steps.
LayoutRun MakeRun(v1::ModelFamily family, int64_t dp, int64_t fsdp,
                  int64_t zero_stage, int64_t micro_batch);

std::vector<LayoutCase> AllCases();

// `count` of `cases`, so that as many features, pairs and triples of them as
// can be are in one of them.
std::vector<LayoutCase> Covering(std::vector<LayoutCase> cases, size_t count);

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_PARITY_LAYOUT_CASES_H_
