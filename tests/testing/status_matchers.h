// gMock matchers for absl::Status and absl::StatusOr.
//
//   EXPECT_THAT(status, IsOk());
//   EXPECT_THAT(status_or, IsOkAndHolds(Eq(3)));
//   EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
//   EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
//                                HasSubstr("rank-0.safetensors")));
//   ASSERT_OK(call());
//   ASSERT_OK_AND_ASSIGN(auto value, MakeValue());
#ifndef LOCKSTEP_TESTS_TESTING_STATUS_MATCHERS_H_
#define LOCKSTEP_TESTS_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace testing {
namespace matchers_internal {

inline const absl::Status& ToStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& ToStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

class IsOkMatcher {
 public:
  template <typename T>
  bool MatchAndExplain(const T& value,
                       ::testing::MatchResultListener* listener) const {
    if (!ToStatus(value).ok()) *listener << "which is " << ToStatus(value);
    return ToStatus(value).ok();
  }
  void DescribeTo(std::ostream* os) const { *os << "is OK"; }
  void DescribeNegationTo(std::ostream* os) const { *os << "is not OK"; }
};

class StatusIsMatcher {
 public:
  StatusIsMatcher(absl::StatusCode code,
                  ::testing::Matcher<const std::string&> message)
      : code_(code), message_(std::move(message)) {}

  template <typename T>
  bool MatchAndExplain(const T& value,
                       ::testing::MatchResultListener* listener) const {
    const absl::Status& status = ToStatus(value);
    *listener << "which is " << status;
    return status.code() == code_ &&
           message_.Matches(std::string(status.message()));
  }
  void DescribeTo(std::ostream* os) const {
    *os << "has code " << absl::StatusCodeToString(code_)
        << " and a message that ";
    message_.DescribeTo(os);
  }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "has not code " << absl::StatusCodeToString(code_)
        << " or its message doesn't fit: ";
    message_.DescribeTo(os);
  }

 private:
  const absl::StatusCode code_;
  const ::testing::Matcher<const std::string&> message_;
};

template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename T>
  bool MatchAndExplain(const absl::StatusOr<T>& value,
                       ::testing::MatchResultListener* listener) const {
    if (!value.ok()) {
      *listener << "which is " << value.status();
      return false;
    }
    return ::testing::SafeMatcherCast<const T&>(inner_).MatchAndExplain(
        *value, listener);
  }
  void DescribeTo(std::ostream* os) const { *os << "is OK and holds a match"; }
  void DescribeNegationTo(std::ostream* os) const {
    *os << "is not OK or holds no match";
  }

 private:
  const Inner inner_;
};

}  // namespace matchers_internal

inline ::testing::PolymorphicMatcher<matchers_internal::IsOkMatcher> IsOk() {
  return ::testing::MakePolymorphicMatcher(matchers_internal::IsOkMatcher());
}

// The code, and a matcher of the message; a plain string is the whole message.
inline ::testing::PolymorphicMatcher<matchers_internal::StatusIsMatcher>
StatusIs(absl::StatusCode code,
         ::testing::Matcher<const std::string&> message = ::testing::_) {
  return ::testing::MakePolymorphicMatcher(
      matchers_internal::StatusIsMatcher(code, std::move(message)));
}

template <typename Inner>
::testing::PolymorphicMatcher<
    matchers_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>>>
IsOkAndHolds(Inner&& inner) {
  return ::testing::MakePolymorphicMatcher(
      matchers_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>>(
          std::forward<Inner>(inner)));
}

}  // namespace testing
}  // namespace lockstep

#define EXPECT_OK(expression) \
  EXPECT_THAT(expression, ::lockstep::testing::IsOk())
#define ASSERT_OK(expression) \
  ASSERT_THAT(expression, ::lockstep::testing::IsOk())

#define ASSERT_OK_AND_ASSIGN(target, expression)                             \
  LOCKSTEP_ASSERT_OK_AND_ASSIGN_INNER(LOCKSTEP_CONCAT(assert_or_, __LINE__), \
                                      target, expression)
#define LOCKSTEP_ASSERT_OK_AND_ASSIGN_INNER(holder, target, expression) \
  auto holder = (expression);                                           \
  ASSERT_TRUE(holder.ok()) << holder.status();                          \
  target = *std::move(holder)

#endif  // LOCKSTEP_TESTS_TESTING_STATUS_MATCHERS_H_
