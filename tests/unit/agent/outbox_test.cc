#include "worker/agent/outbox.h"

#include <string>
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

v1::WorkerMessage StepMessage(int64_t step) {
  v1::WorkerMessage message;
  message.mutable_rank_report()->mutable_step()->set_step(step);
  return message;
}

TEST(OutboxTest, OverItsBytesTheOldestStepsGoAndNothingElse) {
  Outbox outbox(200);
  v1::WorkerMessage exited;
  exited.mutable_rank_exited()->set_message(std::string(100, 'x'));
  outbox.Add(StepMessage(1));
  outbox.Add(exited);
  EXPECT_THAT(SendAll(outbox), ElementsAre(1, 2));
  int64_t last = 2;
  while (outbox.TakeDropped() == 0) outbox.Add(StepMessage(++last));
  const size_t size = outbox.size();
  EXPECT_LT(size, static_cast<size_t>(last));
  // What was sent stays sent, and the newest step is there.
  const std::vector<int64_t> unsent = SendAll(outbox);
  EXPECT_EQ(unsent.size(), size - 1);
  EXPECT_EQ(unsent.back(), last);
  outbox.Rewind();
  EXPECT_EQ(SendAll(outbox).front(), 2);
}

TEST(OutboxTest, WhatIsNoStepIsKeptHoweverLarge) {
  Outbox outbox(10);
  v1::WorkerMessage exited;
  exited.mutable_rank_exited()->set_message(std::string(100, 'x'));
  outbox.Add(exited);
  outbox.Add(exited);
  EXPECT_EQ(outbox.size(), 2u);
  EXPECT_EQ(outbox.TakeDropped(), 0);
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
