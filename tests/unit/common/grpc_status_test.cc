#include "common/grpc_status.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(GrpcStatusTest, EveryCodeAndItsMessageSurvivesTheRoundTrip) {
  EXPECT_TRUE(FromGrpcStatus(ToGrpcStatus(absl::OkStatus())).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(GrpcStatusTest, CodesKeepTheirMeaning) {
  EXPECT_EQ(ToGrpcStatus(absl::AbortedError("")).error_code(),
            grpc::StatusCode::ABORTED);
  EXPECT_EQ(ToGrpcStatus(absl::UnauthenticatedError("")).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace lockstep
