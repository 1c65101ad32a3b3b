#include "worker/optim/lr_schedule.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

ScheduleSpec Schedule(ScheduleName name, int64_t warmup, double minimum) {
  ScheduleSpec schedule;
  schedule.name = name;
  schedule.warmup_steps = warmup;
  schedule.minimum_ratio = minimum;
  return schedule;
}

TEST(LearningRateTest, WarmUpRisesLinearlyFromTheFirstStep) {
  const ScheduleSpec schedule = Schedule(v1::SCHEDULE_NAME_CONSTANT, 10, 0.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 2.0, 1, 100), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 2.0, 5, 100), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 2.0, 10, 100), 2.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 2.0, 100, 100), 2.0);
}

TEST(LearningRateTest, LinearEndsAtTheMinimum) {
  const ScheduleSpec schedule = Schedule(v1::SCHEDULE_NAME_LINEAR, 20, 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 20, 120), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 70, 120), 0.55);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 120, 120), 0.1);
}

TEST(LearningRateTest, CosineIsHalfWayInTheMiddle) {
  const ScheduleSpec schedule = Schedule(v1::SCHEDULE_NAME_COSINE, 20, 0.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 20, 120), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 70, 120), 0.55);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 120, 120), 0.1);
  EXPECT_GT(LearningRateAt(schedule, 1.0, 40, 120), 0.9);
}

TEST(LearningRateTest, WsdIsStableUntilItsDecay) {
  ScheduleSpec schedule = Schedule(v1::SCHEDULE_NAME_WSD, 5, 0.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 90, 100), 1.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 95, 100), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 100, 100), 0.0);
  schedule.decay_steps = 50;
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 75, 100), 0.5);
}

TEST(LearningRateTest, WarmUpAsLongAsTheRunEndsAtThePeak) {
  for (const ScheduleName name :
       {v1::SCHEDULE_NAME_CONSTANT, v1::SCHEDULE_NAME_LINEAR,
        v1::SCHEDULE_NAME_COSINE, v1::SCHEDULE_NAME_WSD}) {
    const ScheduleSpec schedule = Schedule(name, 10, 0.0);
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 9, 10), 0.9);
    EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 10, 10), 1.0);
  }
}

TEST(LearningRateTest, OnlyStepIsAtThePeak) {
  for (const ScheduleName name :
       {v1::SCHEDULE_NAME_CONSTANT, v1::SCHEDULE_NAME_LINEAR,
        v1::SCHEDULE_NAME_COSINE, v1::SCHEDULE_NAME_WSD}) {
    EXPECT_DOUBLE_EQ(LearningRateAt(Schedule(name, 0, 0.0), 1.0, 1, 1), 1.0);
  }
}

TEST(LearningRateTest, ScheduleShorterThanItsWarmUpNeverDecays) {
  const ScheduleSpec schedule = Schedule(v1::SCHEDULE_NAME_COSINE, 50, 0.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 1.0, 10, 10), 0.2);
}

}  // namespace
}  // namespace lockstep
