#include "coordinator/schedule/gang_reservation.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using State = GangReservation::State;

GangReservation Reservation() {
  return GangReservation({"a", "b"}, absl::Seconds(10));
}

TEST(GangReservationTest, AllMustAccept) {
  GangReservation reservation = Reservation();
  reservation.OnAnswer("a", true, "");
  EXPECT_EQ(reservation.state(), State::kWaiting);
  reservation.OnAnswer("a", true, "");
  EXPECT_EQ(reservation.state(), State::kWaiting);
  reservation.OnAnswer("b", true, "");
  EXPECT_EQ(reservation.state(), State::kAccepted);
}

TEST(GangReservationTest, OneRefusalIsFinal) {
  GangReservation reservation = Reservation();
  reservation.OnAnswer("a", false, "device cpu:0 is busy");
  EXPECT_EQ(reservation.state(), State::kRefused);
  reservation.OnAnswer("a", true, "");
  reservation.OnAnswer("b", true, "");
  EXPECT_EQ(reservation.state(), State::kRefused);
  EXPECT_EQ(reservation.reason(), "worker a refused: device cpu:0 is busy");
}

TEST(GangReservationTest, WorkerGoneRefuses) {
  GangReservation reservation = Reservation();
  reservation.OnAnswer("b", true, "");
  reservation.OnWorkerGone("c");
  EXPECT_EQ(reservation.state(), State::kWaiting);
  reservation.OnWorkerGone("b");
  EXPECT_EQ(reservation.state(), State::kRefused);
}

TEST(GangReservationTest, SilenceRefusesAtTheDeadline) {
  GangReservation reservation = Reservation();
  reservation.OnAnswer("a", true, "");
  reservation.OnTime(absl::Seconds(9));
  EXPECT_EQ(reservation.state(), State::kWaiting);
  reservation.OnTime(absl::Seconds(10));
  EXPECT_EQ(reservation.state(), State::kRefused);
  EXPECT_THAT(reservation.reason(), HasSubstr("no answer from worker b"));
}

TEST(GangReservationTest, ExtendedDeadlineIsLater) {
  GangReservation reservation = Reservation();
  reservation.Extend(absl::Seconds(5));
  reservation.OnTime(absl::Seconds(14));
  EXPECT_EQ(reservation.state(), State::kWaiting);
  reservation.OnTime(absl::Seconds(15));
  EXPECT_EQ(reservation.state(), State::kRefused);
}

TEST(GangReservationTest, StrangersAnswerChangesNothing) {
  GangReservation reservation = Reservation();
  reservation.OnAnswer("stranger", false, "no");
  EXPECT_EQ(reservation.state(), State::kWaiting);
}

}  // namespace
}  // namespace lockstep
