#include "worker/agent/outbox.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/agent/backoff.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> SendAll(Outbox& outbox) {
  std::vector<int64_t> sequences;
  while (const v1::WorkerMessage* message = outbox.NextUnsent()) {
    sequences.push_back(message->sequence());
  }
  return sequences;
}

TEST(OutboxTest, NewSessionSendsWhatIsNotAcknowledgedOnceAndInOrder) {
  Outbox outbox;
  for (int i = 0; i < 4; ++i) outbox.Add({});
  EXPECT_THAT(SendAll(outbox), ElementsAre(1, 2, 3, 4));
  outbox.Acknowledge(2);
  EXPECT_THAT(SendAll(outbox), IsEmpty());
  outbox.Rewind();
  outbox.Add({});
  EXPECT_THAT(SendAll(outbox), ElementsAre(3, 4, 5));
  outbox.Acknowledge(5);
  outbox.Rewind();
  EXPECT_EQ(outbox.size(), 0u);
  outbox.Add({});
  EXPECT_THAT(SendAll(outbox), ElementsAre(6));
}

TEST(OutboxTest, WhatThisSessionHasNotSentCannotBeAcknowledged) {
  Outbox outbox;
  for (int i = 0; i < 3; ++i) outbox.Add({});
  ASSERT_NE(outbox.NextUnsent(), nullptr);
  outbox.Acknowledge(100);
  EXPECT_THAT(SendAll(outbox), ElementsAre(2, 3));
}

TEST(BackoffTest, WaitsDoubleUpToTheLongestWithJitterBelow) {
  Backoff backoff(absl::Seconds(1), absl::Seconds(4), 7);
  for (const int full : {1, 2, 4, 4}) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, absl::Seconds(full) / 2);
    EXPECT_LE(wait, absl::Seconds(full));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep
