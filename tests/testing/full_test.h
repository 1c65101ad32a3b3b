// Whether tests run in their long form (./dev test --full).
#ifndef LOCKSTEP_TESTS_TESTING_FULL_TEST_H_
#define LOCKSTEP_TESTS_TESTING_FULL_TEST_H_

#include <cstdlib>

namespace lockstep {
namespace testing {

inline bool IsFullTest() {
  return std::getenv("LOCKSTEP_TEST_FULL") != nullptr;
}

}  // namespace testing
}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_TESTING_FULL_TEST_H_
