#include "worker/train/failure.h"

#include <cerrno>

#include "common/files/file_error.h"
#include "gtest/gtest.h"
#include "worker/train/gang_data.h"

namespace lockstep {
namespace {

TEST(FailureTest, WhatRanOutIsTheCause) {
  EXPECT_EQ(CauseOf(FileError(ENOSPC, "write", "f")), v1::CAUSE_DISK_FULL);
  EXPECT_EQ(CauseOf(FileError(EDQUOT, "write", "f")), v1::CAUSE_DISK_FULL);
  EXPECT_EQ(CauseOf(FileError(EMFILE, "open", "f")), v1::CAUSE_INTERNAL);
  EXPECT_EQ(CauseOf(FileError(ENOMEM, "map", "f")), v1::CAUSE_OUT_OF_MEMORY);
  EXPECT_EQ(CauseOf(absl::ResourceExhaustedError("parameters: 12 bytes")),
            v1::CAUSE_OUT_OF_MEMORY);
}

TEST(FailureTest, FilesAreNoOtherRank) {
  const absl::Status status = FileError(EBUSY, "open", "f");
  EXPECT_FALSE(IsSecondary(status));
  EXPECT_EQ(CauseOf(status), v1::CAUSE_INTERNAL);
}

TEST(FailureTest, DamagedDataAreNoCheckpoint) {
  const absl::Status status = absl::DataLossError("another checksum");
  EXPECT_EQ(CauseOf(status), v1::CAUSE_CORRUPT_CHECKPOINT);
  EXPECT_EQ(CauseOf(DataCause(status)), v1::CAUSE_USER_ERROR);
}

}  // namespace
}  // namespace lockstep
